"""Activation puts the skill's text into the catalog."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Put what was activated in the place of the catalog's skill."""
    original = module.activate_skill

    async def activate_skill(catalog: Any, name: str, *, resources: Any = ()) -> Any:
        active = await original(catalog, name, resources=resources)
        places = [skill.name for skill in catalog.skills]
        catalog.skills[places.index(name)] = active
        return active

    module.activate_skill = activate_skill
