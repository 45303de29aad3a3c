"""The Runtime shows a copy of the catalog that it was given."""

from types import ModuleType
from typing import Any

from pi_course.values import clone

MODULE = "pi_course.composition"


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Let the runtime's catalog be another object."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        return _Disguised(await original(config, deps), resources=clone(deps.resources))

    module.create_runtime = create_runtime
