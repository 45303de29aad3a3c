"""Any answer that counts as true is taken for trust."""

import inspect
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Turn the policy's answer into a bool before it is judged."""
    original = module.load_extension

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        async def generous(source: Any) -> bool:
            answer = is_trusted(source)
            return bool(await answer if inspect.isawaitable(answer) else answer)

        return await original(source, host=host, is_trusted=generous, import_module=import_module)

    module.load_extension = load_extension
