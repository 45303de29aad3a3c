"""A name that an extension has registered already is passed over."""

from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

MODULE = "pi_course.extensions.api"


def inject(module: ModuleType) -> None:
    """Register each tool and command of an extension once."""
    api = module.ExtensionAPI
    register_tool, register_command = api.register_tool, api.register_command
    known: WeakKeyDictionary[Any, set[tuple[str, str]]] = WeakKeyDictionary()

    def is_new(self: Any, kind: str, name: str) -> bool:
        names = known.setdefault(self, set())
        fresh = (kind, name) not in names
        names.add((kind, name))
        return fresh

    def tool_once(self: Any, tool: Any) -> None:
        if is_new(self, "tool", tool.name):
            register_tool(self, tool)

    def command_once(self: Any, name: str, *given: Any, **options: Any) -> None:
        if is_new(self, "command", name):
            register_command(self, name, *given, **options)

    api.register_tool, api.register_command = tool_once, command_once
