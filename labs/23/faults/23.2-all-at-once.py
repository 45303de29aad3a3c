"""Paths are loaded concurrently."""

import asyncio
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Give each path a load of its own, all at the same time."""
    original = module.load_extensions

    async def load_extensions(paths: Any, *, inline: Any = (), **options: Any) -> Any:
        result = await original([], **options)
        options["runtime"] = result.runtime
        parts = await asyncio.gather(*(original([path], **options) for path in paths))
        for part in [*parts, await original([], inline=inline, **options)]:
            result.extensions += part.extensions
            result.errors += part.errors
        return result

    module.load_extensions = load_extensions
