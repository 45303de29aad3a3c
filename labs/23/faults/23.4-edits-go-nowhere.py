"""What a handler changes in a call is seen by nobody."""

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
    """Give each handler a call of its own."""
    runner = module.ExtensionRunner
    init, emit = runner.__init__, runner.emit_tool_call

    def apart(handler: Any) -> Any:
        return lambda event: handler(_Differing(event, call=deepcopy(event.call)))

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    async def emit_tool_call(self: Any, call: Any) -> Any:
        places = [each.handlers for each in self.given if each.handlers.get("tool_call")]
        originals = [handlers["tool_call"] for handlers in places]
        for handlers in places:
            handlers["tool_call"] = [apart(each) for each in handlers["tool_call"]]
        try:
            return await emit(self, call)
        finally:
            for handlers, original in zip(places, originals, strict=True):
                handlers["tool_call"] = original

    runner.__init__, runner.emit_tool_call = keep, emit_tool_call
