"""A skill that is activated twice is accepted."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Drop the doubles before they can be refused."""
    original = module.format_resource_context

    def format_resource_context(catalog: Any, activated_skills: Any) -> str:
        once = {(skill.name, skill.source): skill for skill in activated_skills}
        return original(catalog, list(once.values()))  # type: ignore[no-any-return]

    module.format_resource_context = format_resource_context
