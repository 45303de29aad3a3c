"""A file that is requested twice comes twice."""

from types import ModuleType
from typing import Any

from pi_course.values import clone


def inject(module: ModuleType) -> None:
    """Repeat the files as often as they were requested."""
    original = module.activate_skill

    async def activate_skill(catalog: Any, name: str, *, resources: Any = ()) -> Any:
        requests = list(resources)
        active = await original(catalog, name, resources=requests)
        files = {file.request: file for file in active.resources}
        active.resources = [clone(files[request]) for request in requests]
        return active

    module.activate_skill = activate_skill
