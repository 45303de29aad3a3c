"""A scope's packages come right after its folder, before the other scope."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"

_SCOPES = ("temporary", "project", "user")


def inject(module: ModuleType) -> None:
    """Order the paths by their scope."""
    original = module.resolve_extensions

    def resolve_extensions(**options: Any) -> Any:
        resolved = original(**options)
        resolved.paths.sort(key=lambda each: _SCOPES.index(each.metadata.scope))
        return resolved

    module.resolve_extensions = resolve_extensions
