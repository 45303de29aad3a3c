"""The requested files come in alphabetical order."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Sort the requests."""
    original = module.activate_skill

    async def activate_skill(catalog: Any, name: str, *, resources: Any = ()) -> Any:
        return await original(catalog, name, resources=sorted(set(resources)))

    module.activate_skill = activate_skill
