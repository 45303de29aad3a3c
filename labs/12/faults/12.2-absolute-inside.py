"""An absolute request is accepted where it points into the skill."""

from pathlib import Path
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Accept absolute paths below the skill's root."""
    original = module.activate_skill

    def accepted(skill: Any, request: str) -> Any:
        path = Path(request)
        if not request or not path.is_relative_to(skill.root) or not path.is_file():
            found = None if request.startswith("/") else Path(skill.root, request)
            inside = found is not None and found.resolve().is_relative_to(skill.root) and found.is_file()
            if found is None or not inside or found.is_symlink():
                return None
            path = found
        return module.SkillFile(request, str(path.resolve()), path.read_text(encoding="utf-8"))

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
