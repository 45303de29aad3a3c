"""Only activated skills are described."""

from dataclasses import replace
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Leave the other skills out of the catalog while it is formatted."""
    original = module.format_resource_context

    def format_resource_context(catalog: Any, activated_skills: Any) -> str:
        original(catalog, activated_skills)
        active = {skill.name for skill in activated_skills}
        skills = [skill for skill in catalog.skills if skill.name in active]
        return original(replace(catalog, skills=skills), activated_skills)  # type: ignore[no-any-return]

    module.format_resource_context = format_resource_context
