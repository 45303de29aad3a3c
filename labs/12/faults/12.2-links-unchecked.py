"""Only the text of a request is checked, not where links lead."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Accept what lies inside the skill on paper."""
    original = module.activate_skill

    def accepted(skill: Any, request: str) -> Any:
        path = Path(os.path.normpath(f"{skill.root}/{request}"))
        if (
            not request
            or request.startswith("/")
            or not path.is_relative_to(skill.root)
            or not path.is_file()
        ):
            return None
        return module.SkillFile(request, os.path.realpath(path), path.read_text(encoding="utf-8"))

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
