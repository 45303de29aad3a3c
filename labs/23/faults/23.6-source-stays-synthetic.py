"""Tools and commands keep the source that the loader made up."""

from dataclasses import replace
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Put a made-up source back on what an extension offers."""
    original = module.ResourceLoader.reload

    async def reload(self: Any, resolve_trust: Any = None) -> Any:
        result = await original(self, resolve_trust)
        for extension in result.extensions:
            made_up = replace(extension.source_info, source="local", scope="temporary")
            for kind in ("tools", "commands"):
                items = getattr(extension, kind)
                for name, item in [*items.items()]:
                    items[name] = replace(item, source_info=made_up)
        return result

    module.ResourceLoader.reload = reload
