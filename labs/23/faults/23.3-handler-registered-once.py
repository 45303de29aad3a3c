"""A handler that is registered a second time is passed over."""

from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

MODULE = "pi_course.extensions.api"


def inject(module: ModuleType) -> None:
    """Add each handler of an event once."""
    original = module.ExtensionAPI.on
    known: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()

    def on(self: Any, event: str, handler: Any) -> None:
        pairs = known.setdefault(self, [])
        if (event, handler) not in pairs:
            original(self, event, handler)
            pairs.append((event, handler))

    module.ExtensionAPI.on = on
