"""A reload keeps every flag value, those that are only defaults too."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Put all values back that there were."""
    original = module.AgentSession.reload

    async def reload(self: Any) -> None:
        values = dict(self.runner.runtime.flag_values)
        await original(self)
        self.runner.runtime.flag_values.update(values)

    module.AgentSession.reload = reload
