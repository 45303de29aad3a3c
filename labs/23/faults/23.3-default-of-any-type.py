"""A default that does not fit the flag's type is taken."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.api"


def inject(module: ModuleType) -> None:
    """Declare the flag all the same where its default is refused."""
    from pi_course.resources import ExtensionError

    original = module.ExtensionAPI.register_flag

    def register_flag(self: Any, name: str, *, type: Any, default: Any = None, **options: Any) -> None:
        try:
            original(self, name, type=type, default=default, **options)
        except ExtensionError:
            original(self, name, type=type, **options)

    module.ExtensionAPI.register_flag = register_flag
