"""`control` can prompt the Agent, past the store."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Give the control a `prompt`."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        runtime = await original(config, deps)
        return _Disguised(runtime, control=_Disguised(runtime.control, prompt=runtime.prompt))

    module.create_runtime = create_runtime
