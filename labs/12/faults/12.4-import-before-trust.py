"""The module of an untrusted extension is imported all the same."""

import inspect
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Import whatever `load_extension` skips."""
    original = module.load_extension

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        result = await original(source, host=host, is_trusted=is_trusted, import_module=import_module)
        if result.status == "skipped_untrusted":
            imported = import_module(source)
            if inspect.isawaitable(imported):
                await imported
        return result

    module.load_extension = load_extension
