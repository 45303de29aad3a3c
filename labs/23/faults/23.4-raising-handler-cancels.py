"""A session_before handler that raises cancels."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Fail closed at these events, too."""
    runner = module.ExtensionRunner
    init, emit = runner.__init__, runner.emit_session_before

    def closed(handler: Any) -> Any:
        async def handle(event: Any) -> Any:
            try:
                answer = handler(event)
                return await answer if inspect.isawaitable(answer) else answer
            except Exception:  # noqa: BLE001 - the mistake
                return {"cancel": True}

        return handle

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    async def emit_session_before(self: Any, event: Any) -> Any:
        places = [each.handlers for each in self.given if each.handlers.get(event.type)]
        originals = [handlers[event.type] for handlers in places]
        for handlers in places:
            handlers[event.type] = [closed(each) for each in handlers[event.type]]
        try:
            return await emit(self, event)
        finally:
            for handlers, original in zip(places, originals, strict=True):
                handlers[event.type] = original

    runner.__init__, runner.emit_session_before = keep, emit_session_before
