"""The failure of the store comes out inside another error."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


class _Faulty:
    """A runtime that explains errors instead of raising them."""

    def __init__(self, module: ModuleType, inner: Any) -> None:
        self._module, self._inner = module, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def prompt(self, value: Any) -> Any:
        return await self._explained(self._inner.prompt(value))

    async def flush(self) -> None:
        await self._explained(self._inner.flush())

    async def _explained(self, coroutine: Any) -> Any:
        try:
            return await coroutine
        except self._module.RuntimeDisposedError:
            raise
        except Exception as error:
            raise RuntimeError("persisting failed") from error


def inject(module: ModuleType) -> None:
    """Wrap every runtime that is made."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        return _Faulty(module, await original(config, deps))

    module.create_runtime = create_runtime
