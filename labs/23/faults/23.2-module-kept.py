"""A module is imported once for as long as the process lives."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Remember what was imported."""
    original = module.load_extensions
    usual = inspect.signature(original).parameters["import_module"].default
    imported: dict[str, Any] = {}

    async def load_extensions(paths: Any, *, import_module: Any = usual, **options: Any) -> Any:
        async def remembering(path: str) -> Any:
            if path not in imported:
                found = usual(path)
                imported[path] = await found if inspect.isawaitable(found) else found
            return imported[path]

        chosen = remembering if import_module is usual else import_module
        return await original(paths, import_module=chosen, **options)

    module.load_extensions = load_extensions
