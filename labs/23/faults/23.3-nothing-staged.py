"""What a failed factory did to the state that all share stays there."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Let inline factories end well, and tell their failures afterwards."""
    original = module.load_extensions

    async def load_extensions(paths: Any, *, inline: Any = (), **options: Any) -> Any:
        failed: dict[str, Any] = {}

        def hushed(item: Any, number: int) -> Any:
            name = getattr(item, "name", None)
            factory = item.factory if isinstance(item, module.InlineExtension) else item

            async def setup(api: Any) -> None:
                try:
                    done = factory(api)
                    if inspect.isawaitable(done):
                        await done
                except Exception as error:  # noqa: BLE001 - told when the load is done
                    failed[f"<inline:{name or number}>"] = f"Failed to load extension: {error}"

            return module.InlineExtension(setup, name)

        quiet = [hushed(item, number) for number, item in enumerate(inline, 1)]
        result = await original(paths, inline=quiet, **options)
        result.extensions[:] = [each for each in result.extensions if each.path not in failed]
        result.errors += [module.LoadError(path, text) for path, text in failed.items()]
        return result

    module.load_extensions = load_extensions
