"""A prompt that was accepted but not begun is dropped by dispose()."""

import asyncio
from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


class _Faulty:
    """A runtime whose prompts look at the door again when their turn comes."""

    def __init__(self, module: ModuleType, inner: Any) -> None:
        self._module, self._inner = module, inner
        self._turn = asyncio.Lock()
        self._gone = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def prompt(self, value: Any) -> Any:
        if self._gone:
            raise self._module.RuntimeDisposedError("disposed")
        async with self._turn:
            if self._gone:
                raise self._module.RuntimeDisposedError("disposed")
            return await self._inner.prompt(value)

    def dispose(self) -> Any:
        self._gone = True
        return self._inner.dispose()


def inject(module: ModuleType) -> None:
    """Wrap every runtime that is made."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        return _Faulty(module, await original(config, deps))

    module.create_runtime = create_runtime
