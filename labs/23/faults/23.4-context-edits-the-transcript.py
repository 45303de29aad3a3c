"""Context handlers edit the caller's own messages."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Let the caller's messages say what the handlers' say."""
    original = module.ExtensionRunner.emit_context

    async def emit_context(self: Any, messages: Any) -> Any:
        result = await original(self, messages)
        for own, edited in zip(messages, result, strict=False):
            own.content = edited.content
        return result

    module.ExtensionRunner.emit_context = emit_context
