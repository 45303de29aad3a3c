"""A command-line path that does not exist is passed over in silence."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Forget the errors."""
    original = module.resolve_extensions

    def resolve_extensions(**options: Any) -> Any:
        resolved = original(**options)
        resolved.errors.clear()
        return resolved

    module.resolve_extensions = resolve_extensions
