"""Every tool_result handler sees the tool's own result, not what those before it made of it."""

from copy import deepcopy
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


class _Differing:
    """An event that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Show each handler the first result."""
    runner = module.ExtensionRunner
    init, emit = runner.__init__, runner.emit_tool_result

    def showing(result: Any, handler: Any) -> Any:
        return lambda event: handler(_Differing(event, result=deepcopy(result)))

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    async def emit_tool_result(self: Any, result: Any) -> Any:
        places = [each.handlers for each in self.given if each.handlers.get("tool_result")]
        originals = [handlers["tool_result"] for handlers in places]
        for handlers in places:
            handlers["tool_result"] = [showing(result, each) for each in handlers["tool_result"]]
        try:
            return await emit(self, result)
        finally:
            for handlers, original in zip(places, originals, strict=True):
                handlers["tool_result"] = original

    runner.__init__, runner.emit_tool_result = keep, emit_tool_result
