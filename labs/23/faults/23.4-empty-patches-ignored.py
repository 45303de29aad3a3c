"""A patch is taken only where its value counts as true."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Leave out of each patch what is empty, `False` or `None`."""
    runner = module.ExtensionRunner
    init, emit = runner.__init__, runner.emit_tool_result

    def truthy(handler: Any) -> Any:
        async def handle(event: Any) -> Any:
            answer = handler(event)
            patch = await answer if inspect.isawaitable(answer) else answer
            return {key: value for key, value in (patch or {}).items() if value}

        return handle

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    async def emit_tool_result(self: Any, result: Any) -> Any:
        places = [each.handlers for each in self.given if each.handlers.get("tool_result")]
        originals = [handlers["tool_result"] for handlers in places]
        for handlers in places:
            handlers["tool_result"] = [truthy(each) for each in handlers["tool_result"]]
        try:
            return await emit(self, result)
        finally:
            for handlers, original in zip(places, originals, strict=True):
                handlers["tool_result"] = original

    runner.__init__, runner.emit_tool_result = keep, emit_tool_result
