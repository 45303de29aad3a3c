"""The catalog carries the text of every skill."""

from dataclasses import fields, make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Give every skill of the catalog a body."""
    original = module.discover_resources
    with_body = make_dataclass("SkillResource", [("body", str, "")], bases=(module.SkillResource,))
    with_body.__module__ = module.__name__

    def grown(resource: Any) -> Any:
        if resource.kind != "skill":
            return resource
        known = {field.name: getattr(resource, field.name) for field in fields(resource) if field.init}
        return with_body(**known, body=Path(resource.source).read_text(encoding="utf-8"))

    async def discover_resources(roots: Any) -> Any:
        catalog = await original(roots)
        for view in (catalog.resources, catalog.skills):
            view[:] = [grown(resource) for resource in view]
        return catalog

    module.discover_resources = discover_resources
