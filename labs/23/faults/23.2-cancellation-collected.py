"""Cancellation and Ctrl-C become load errors like everything else."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Turn whatever an import raises into a failure."""
    original = module.load_extensions
    usual = inspect.signature(original).parameters["import_module"].default

    async def load_extensions(paths: Any, *, import_module: Any = usual, **options: Any) -> Any:
        async def guarded(path: str) -> Any:
            try:
                found = import_module(path)
                return await found if inspect.isawaitable(found) else found
            except Exception:
                raise
            except BaseException as error:
                raise RuntimeError(str(error)) from error

        return await original(paths, import_module=guarded, **options)

    module.load_extensions = load_extensions
