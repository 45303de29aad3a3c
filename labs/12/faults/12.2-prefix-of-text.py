"""A path counts as inside if its text begins with the root's."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Accept every file whose path begins like the skill's root."""
    original = module.activate_skill

    def accepted(skill: Any, request: str) -> Any:
        path = os.path.realpath(f"{skill.root}/{request}")
        if (
            not request
            or request.startswith("/")
            or not path.startswith(skill.root)
            or not Path(path).is_file()
        ):
            return None
        return module.SkillFile(request, path, Path(path).read_text(encoding="utf-8"))

    async def activate_skill(catalog: Any, name: str, *, resources: Any = ()) -> Any:
        try:
            return await original(catalog, name, resources=resources)
        except module.ResourceError:
            active = await original(catalog, name)
            files = [accepted(active, request) for request in dict.fromkeys(resources)]
            if None in files:
                raise
            active.resources = files
            return active

    module.activate_skill = activate_skill
