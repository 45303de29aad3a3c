"""A skill is activated whatever name its file bears by now."""

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Bring the catalog's name in line with the file before activation."""
    original = module.activate_skill

    def renamed(skill: Any) -> Any:
        found = re.search(r"^name: *(.+)$", Path(skill.source).read_text(encoding="utf-8"), re.MULTILINE)
        return replace(skill, name=found[1] if found else skill.name)

    async def activate_skill(catalog: Any, name: str, *, resources: Any = ()) -> Any:
        asked = [one for one in catalog.skills if one.name == name]
        if asked:
            now = renamed(asked[0])
            catalog = module.ResourceCatalog([now], [], [now], [])
            return await original(catalog, now.name, resources=resources)
        return await original(catalog, name, resources=resources)

    module.activate_skill = activate_skill
