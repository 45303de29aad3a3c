"""The catalog is ordered by the files' paths."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Order every list of the catalog by kind and path."""
    original = module.discover_resources
    order = ("instructions", "skill", "template")

    def place(resource: Any) -> tuple[int, str]:
        return order.index(resource.kind), resource.source

    async def discover_resources(roots: Any) -> Any:
        catalog = await original(roots)
        for view in (catalog.resources, catalog.instructions, catalog.skills, catalog.templates):
            view.sort(key=place)
        return catalog

    module.discover_resources = discover_resources
