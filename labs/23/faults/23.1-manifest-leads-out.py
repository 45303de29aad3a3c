"""A manifest's entry is taken wherever it lies."""

import os
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Take what the root's own manifest declares, as long as it is there."""
    original = module.collect_auto_extensions

    def collect_auto_extensions(root: Any, **options: Any) -> Any:
        found, file = original(root, **options), Path(root, "pyproject.toml")
        if not file.is_file():
            return found
        declared = tomllib.loads(file.read_text(encoding="utf-8"))["tool"]["pi"]["extensions"]
        paths = [os.path.normpath(f"{os.fspath(root)}/{entry}") for entry in declared if entry[0] != "/"]
        return [path for path in paths if Path(path).exists()] or found

    module.collect_auto_extensions = collect_auto_extensions
