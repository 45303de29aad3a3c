"""Entry points are loaded while they are listed."""

from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Load each entry point that is listed."""
    original = module.resolve_extensions

    def resolve_extensions(**options: Any) -> Any:
        resolved = original(**options)
        listed = {each.path for each in resolved.paths if each.enabled}
        for entry in options.get("entry_points", entry_points)(group="pi.extensions"):
            if f"<entry-point:{entry.name}>" in listed:
                entry.load()
        return resolved

    module.resolve_extensions = resolve_extensions
