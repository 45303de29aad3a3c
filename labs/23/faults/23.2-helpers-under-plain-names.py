"""Helpers beside an extension are imported under their own names, like any module."""

import inspect
import itertools
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"

_numbers = itertools.count()


def _import_plainly(path: str) -> ModuleType:
    spec: Any = spec_from_file_location(f"plain_{next(_numbers)}", path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(path).parent))
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.path[0]
    return module


def inject(module: ModuleType) -> None:
    """Put the extension's folder on the path while its file runs."""
    original = module.load_extensions
    usual = inspect.signature(original).parameters["import_module"].default

    async def load_extensions(paths: Any, *, import_module: Any = usual, **options: Any) -> Any:
        def importing(path: str) -> Any:
            is_plain = import_module is usual and path.endswith(".py") and Path(path).is_file()
            return _import_plainly(path) if is_plain else import_module(path)

        return await original(paths, import_module=importing, **options)

    module.load_extensions = load_extensions
