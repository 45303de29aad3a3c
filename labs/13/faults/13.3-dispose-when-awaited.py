"""dispose() closes the entry only once its answer is awaited."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


class _Later:
    """Something to await that does nothing before."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __await__(self) -> Any:
        return self._inner.dispose().__await__()


class _Faulty:
    """A runtime that puts off its end."""

    def __init__(self, module: ModuleType, inner: Any) -> None:
        self._module, self._inner = module, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def dispose(self) -> Any:
        return _Later(self._inner)


def inject(module: ModuleType) -> None:
    """Wrap every runtime that is made."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        return _Faulty(module, await original(config, deps))

    module.create_runtime = create_runtime
