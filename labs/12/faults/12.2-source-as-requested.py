"""A file's source is the path as it was requested."""

import os
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Put root and request together for a source."""
    original = module.activate_skill

    async def activate_skill(catalog: Any, name: str, *, resources: Any = ()) -> Any:
        active = await original(catalog, name, resources=resources)
        for file in active.resources:
            file.source = os.path.normpath(f"{active.root}/{file.request}")
        return active

    module.activate_skill = activate_skill
