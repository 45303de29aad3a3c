"""The extension host is shown by the Runtime, but no tool call passes through it."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"

_PARTS = ("model", "tools", "session", "resources", "extension_host", "create_id", "now")


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Wire the Agent without the host."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        parts = {name: getattr(deps, name) for name in _PARTS} | {"extension_host": None}
        runtime = await original(config, module.RuntimeDeps(**parts))
        return _Disguised(runtime, extensions=deps.extension_host)

    module.create_runtime = create_runtime
