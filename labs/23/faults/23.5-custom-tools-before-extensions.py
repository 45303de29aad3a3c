"""The host's own tools are merged before the extensions'."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Build sessions whose host's tools count as built-in ones."""
    original = module.AgentSession.__init__

    def build(self: Any, parts: Any, loader: Any, *, builtin_tools: Any = (), custom_tools: Any = ()) -> None:
        named = {tool.name: tool for tool in [*builtin_tools, *custom_tools]}
        original(self, parts, loader, builtin_tools=list(named.values()))

    module.AgentSession.__init__ = build
