"""Inline factories are numbered from 0."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Name each factory that has no name by its index."""
    original = module.load_extensions

    async def load_extensions(paths: Any, *, inline: Any = (), **options: Any) -> Any:
        named = [
            each if isinstance(each, module.InlineExtension) else module.InlineExtension(each, str(index))
            for index, each in enumerate(inline)
        ]
        return await original(paths, inline=named, **options)

    module.load_extensions = load_extensions
