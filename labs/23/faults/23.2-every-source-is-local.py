"""Every extension is said to come from a local file."""

from dataclasses import replace
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Overlook the labels."""
    original = module.load_extensions

    async def load_extensions(paths: Any, **options: Any) -> Any:
        result = await original(paths, **options)
        for extension in result.extensions:
            extension.source_info = replace(extension.source_info, source="local")
        return result

    module.load_extensions = load_extensions
