"""The lists by kind hold the very objects of `resources`."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Fill the views from `resources` without copying."""
    original = module.discover_resources

    async def discover_resources(roots: Any) -> Any:
        catalog = await original(roots)
        views = [
            [resource for resource in catalog.resources if resource.kind == kind]
            for kind in ("instructions", "skill", "template")
        ]
        return module.ResourceCatalog(catalog.resources, *views)

    module.discover_resources = discover_resources
