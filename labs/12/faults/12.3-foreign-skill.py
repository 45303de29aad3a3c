"""A skill of another catalog is accepted where its name is known."""

from dataclasses import replace
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Pass every active skill off as the catalog's own."""
    original = module.format_resource_context

    def format_resource_context(catalog: Any, activated_skills: Any) -> str:
        sources = {skill.name: skill.source for skill in catalog.skills}
        own = [replace(skill, source=sources.get(skill.name, skill.source)) for skill in activated_skills]
        return original(catalog, own)  # type: ignore[no-any-return]

    module.format_resource_context = format_resource_context
