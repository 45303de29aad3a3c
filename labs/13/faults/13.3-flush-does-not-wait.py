"""flush() reports a failure, but waits for nothing."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


class _Faulty:
    """A runtime whose flush looks only at what has failed already."""

    def __init__(self, module: ModuleType, inner: Any) -> None:
        self._module, self._inner = module, inner
        self._failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def prompt(self, value: Any) -> Any:
        try:
            return await self._inner.prompt(value)
        except self._module.RuntimeDisposedError:
            raise
        except Exception as error:
            self._failure = error
            raise

    async def flush(self) -> None:
        if self._failure is not None:
            raise self._failure


def inject(module: ModuleType) -> None:
    """Wrap every runtime that is made."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        return _Faulty(module, await original(config, deps))

    module.create_runtime = create_runtime
