"""A context remembers what it has shown, and shows it again whatever has become of it."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


class _Remembering:
    """A view that looks once."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["_inner"] = inner

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self._inner, name)
        return found


def inject(module: ModuleType) -> None:
    """Create contexts that look once."""
    original = module.ExtensionRunner.create_context
    module.ExtensionRunner.create_context = lambda self: _Remembering(original(self))
