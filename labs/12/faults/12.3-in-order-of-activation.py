"""Active skills come in the order of their activation."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Put the sections of the active skills one after another as they were given."""
    original = module.format_resource_context

    def format_resource_context(catalog: Any, activated_skills: Any) -> str:
        original(catalog, activated_skills)
        before = original(catalog, [])
        parts = [original(catalog, [skill]).removeprefix(before) for skill in activated_skills]
        return before + "".join(parts)

    module.format_resource_context = format_resource_context
