"""Each registration of a flag writes its default, whatever is there."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Write every loaded extension's defaults over the values."""
    original = module.load_extensions

    async def load_extensions(paths: Any, **options: Any) -> Any:
        result = await original(paths, **options)
        for extension in result.extensions:
            for name, flag in extension.flags.items():
                if flag.default is not None:
                    result.runtime.flag_values[name] = flag.default
        return result

    module.load_extensions = load_extensions
