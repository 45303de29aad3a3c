"""Handlers edit the caller's own call."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Let the caller's arguments become those of the verdict."""
    original = module.ExtensionRunner.emit_tool_call

    async def emit_tool_call(self: Any, call: Any) -> Any:
        verdict = await original(self, call)
        if not verdict.blocked:
            call.arguments = verdict.call.arguments
        return verdict

    module.ExtensionRunner.emit_tool_call = emit_tool_call
