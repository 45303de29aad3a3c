"""A tool that is registered later is switched on, even where its name was there and switched off."""

import contextlib
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.api"


def inject(module: ModuleType) -> None:
    """Switch on whatever is registered once there is a core."""
    from pi_course.resources import ExtensionError

    original = module.ExtensionAPI.register_tool

    def register_tool(self: Any, tool: Any) -> None:
        original(self, tool)
        with contextlib.suppress(ExtensionError, AttributeError):  # no core yet, or one that has no switches
            active = self.get_active_tools()
            if tool.name not in active:
                self.set_active_tools([*active, tool.name])

    module.ExtensionAPI.register_tool = register_tool
