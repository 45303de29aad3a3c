"""Built-in tools are merged after the extensions'."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Build sessions whose built-in tools count as the host's own."""
    original = module.AgentSession.__init__

    def build(self: Any, parts: Any, loader: Any, *, builtin_tools: Any = (), custom_tools: Any = ()) -> None:
        named = {tool.name: tool for tool in [*builtin_tools, *custom_tools]}
        original(self, parts, loader, custom_tools=list(named.values()))

    module.AgentSession.__init__ = build
