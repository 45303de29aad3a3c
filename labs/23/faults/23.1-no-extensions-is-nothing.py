"""`no_extensions` leaves out what the command line names, too."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Take `no_extensions` at its word."""
    original = module.resolve_extensions

    def resolve_extensions(*, no_extensions: bool = False, **options: Any) -> Any:
        resolved = original(no_extensions=no_extensions, **options)
        if no_extensions:
            resolved.paths.clear()
        return resolved

    module.resolve_extensions = resolve_extensions
