"""A raising tool_call handler is passed over, as one of any other event."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Let no fault of a handler reach the verdict."""
    runner = module.ExtensionRunner
    init, emit = runner.__init__, runner.emit_tool_call

    def guarded(handler: Any) -> Any:
        async def passed_over(event: Any) -> Any:
            try:
                answer = handler(event)
                return await answer if inspect.isawaitable(answer) else answer
            except Exception:  # noqa: BLE001 - the mistake
                return None

        return passed_over

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    async def emit_tool_call(self: Any, call: Any) -> Any:
        places = [each.handlers for each in self.given if each.handlers.get("tool_call")]
        originals = [handlers["tool_call"] for handlers in places]
        for handlers in places:
            handlers["tool_call"] = [guarded(each) for each in handlers["tool_call"]]
        try:
            return await emit(self, call)
        finally:
            for handlers, original in zip(places, originals, strict=True):
                handlers["tool_call"] = original

    runner.__init__, runner.emit_tool_call = keep, emit_tool_call
