"""Resources are told apart by their names alone."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Keep the first resource of each name, whatever its kind."""
    original = module.discover_resources

    async def discover_resources(roots: Any) -> Any:
        catalog = await original(roots)
        first: dict[str, Any] = {}
        for resource in catalog.resources:
            first.setdefault(resource.name, resource)
        kept = {(resource.kind, resource.name) for resource in first.values()}
        return module.ResourceCatalog(
            *(
                [resource for resource in view if (resource.kind, resource.name) in kept]
                for view in (catalog.resources, catalog.instructions, catalog.skills, catalog.templates)
            )
        )

    module.discover_resources = discover_resources
