"""Of several patterns the one that is written last decides."""

import os
from dataclasses import replace
from fnmatch import fnmatch
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Judge each path anew by the patterns of its scope in the order of the settings."""
    original = module.resolve_extensions

    def judged(each: Any, patterns: list[str]) -> Any:
        on = True
        for pattern in patterns:
            same = os.path.realpath(pattern[1:]) == os.path.realpath(each.path)
            names = (each.path, os.path.basename(each.path))  # noqa: PTH119 - paths are strings here
            if any(fnmatch(name, pattern[1:]) for name in names) if pattern[0] == "!" else same:
                on = pattern[0] == "+"
        return replace(each, enabled=on)

    def resolve_extensions(*, project: Any, user: Any, **options: Any) -> Any:
        resolved = original(project=project, user=user, **options)
        for scope, settings in (("project", project), ("user", user)):
            patterns = [entry for entry in settings.extensions if entry[0] in "!+-"]
            resolved.paths[:] = [
                judged(each, patterns)
                if (each.metadata.scope, each.metadata.origin) == (scope, "top-level")
                else each
                for each in resolved.paths
            ]
        return resolved

    module.resolve_extensions = resolve_extensions
