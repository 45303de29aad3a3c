"""A project that is not trusted is resolved like any other."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Leave trust to somebody else."""
    original = module.resolve_extensions

    def resolve_extensions(*, trusted: bool = False, **options: Any) -> Any:
        return original(trusted=True, **options)

    module.resolve_extensions = resolve_extensions
