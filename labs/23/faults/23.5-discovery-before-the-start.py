"""`resources_discover` comes before `session_start`."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Hold the start back until resources were discovered."""
    original = module.ExtensionRunner.emit
    held: list[Any] = []

    async def emit(self: Any, event: Any) -> Any:
        if event.type == "session_start":
            held.append(event)
            return []
        answers = await original(self, event)
        if event.type == "resources_discover":
            while held:
                await original(self, held.pop())
        return answers

    module.ExtensionRunner.emit = emit
