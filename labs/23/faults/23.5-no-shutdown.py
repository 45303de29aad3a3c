"""A session that is disposed of ends without `session_shutdown`."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Tell nobody of a shutdown, unless it belongs to a reload."""
    original = module.ExtensionRunner.emit

    async def emit(self: Any, event: Any) -> Any:
        if event.type == "session_shutdown" and event.reason != "reload":
            return []
        return await original(self, event)

    module.ExtensionRunner.emit = emit
