"""What stands for a blocked call does not bear the call's id."""

from dataclasses import replace
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Take the id off error results."""
    original = module.AgentSession.execute

    async def execute(self: Any, call: Any, *given: Any, **options: Any) -> Any:
        result = await original(self, call, *given, **options)
        return replace(result, tool_call_id="") if result.is_error else result

    module.AgentSession.execute = execute
