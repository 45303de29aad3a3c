"""An extension whose setup fails is committed as far as it came."""

import contextlib
import inspect
from types import ModuleType, SimpleNamespace
from typing import Any


def inject(module: ModuleType) -> None:
    """Swallow what setup raises."""
    original = module.load_extension

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        async def imported(source: Any) -> Any:
            loaded = import_module(source)
            loaded = await loaded if inspect.isawaitable(loaded) else loaded
            setup = getattr(loaded, "setup", None)

            async def tolerant(context: Any) -> None:
                with contextlib.suppress(Exception):
                    made = setup(context)
                    if inspect.isawaitable(made):
                        await made

            return SimpleNamespace(setup=tolerant) if callable(setup) else loaded

        return await original(source, host=host, is_trusted=is_trusted, import_module=imported)

    module.load_extension = load_extension
