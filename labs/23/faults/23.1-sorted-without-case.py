"""Names are sorted as a person would, upper and lower case alike."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Sort what a scan without a manifest gives by lower-case names."""
    original = module.collect_auto_extensions

    def collect_auto_extensions(root: Any, **options: Any) -> Any:
        found = original(root, **options)
        if Path(root, "pyproject.toml").is_file():
            return found
        return sorted(found, key=lambda path: os.path.relpath(path, root).lower())

    module.collect_auto_extensions = collect_auto_extensions
