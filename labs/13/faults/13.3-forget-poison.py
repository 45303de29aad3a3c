"""A failed append is reported once and then forgotten: the next prompt runs."""

import asyncio
from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


class _Forgetful:
    """A runtime that starts afresh from the stored branch after each failure."""

    def __init__(self, module: ModuleType, original: Any, config: Any, deps: Any) -> None:
        self._module, self._original, self._config, self._deps = module, original, config, deps
        self.inner: Any = None
        self._fresh = asyncio.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def start(self, leaf_id: str | None) -> None:
        config = self._config
        config = self._module.RuntimeConfig(leaf_id, config.context, config.system_prompt, config.max_steps)
        self.inner = await self._original(config, self._deps)

    async def prompt(self, value: Any) -> Any:
        inner = self.inner
        try:
            return await inner.prompt(value)
        except self._module.RuntimeDisposedError:
            raise
        except Exception:
            async with self._fresh:
                if self.inner is inner:
                    entries = await self._deps.session.entries()
                    await self.start(entries[-1].id if entries else None)
            raise


def inject(module: ModuleType) -> None:
    """Let every failure be followed by a runtime that knows nothing of it."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        runtime = _Forgetful(module, original, config, deps)
        await runtime.start(config.active_leaf_id)
        return runtime

    module.create_runtime = create_runtime
