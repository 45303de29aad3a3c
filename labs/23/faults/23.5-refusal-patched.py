"""`tool_result` handlers get to see the refusal of a blocked call, and may make a success of it."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Show error results to the handlers."""
    original = module.AgentSession.execute

    async def execute(self: Any, call: Any, *given: Any, **options: Any) -> Any:
        result = await original(self, call, *given, **options)
        return await self.runner.emit_tool_result(result) if result.is_error else result

    module.AgentSession.execute = execute
