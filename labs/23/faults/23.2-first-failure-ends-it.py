"""The first path that fails ends the load."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Load path by path until one fails."""
    original = module.load_extensions

    async def load_extensions(paths: Any, *, inline: Any = (), **options: Any) -> Any:
        result = await original([], **options)
        options["runtime"] = result.runtime
        for path in paths:
            part = await original([path], **options)
            result.extensions += part.extensions
            result.errors += part.errors
            if part.errors:
                return result
        result.extensions += (await original([], inline=inline, **options)).extensions
        return result

    module.load_extensions = load_extensions
