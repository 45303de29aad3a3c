"""The first after hook that fails silences the later ones."""

import inspect
from types import ModuleType, SimpleNamespace
from typing import Any


class _Changing:
    """An extension's context that changes the handlers of some events."""

    def __init__(self, inner: Any, changes: dict[str, Any]) -> None:
        self._inner = inner
        self._changes = changes
        self.register_tool = inner.register_tool

    def on(self, event: Any, handler: Any) -> None:
        self._inner.on(event, self._changes[event](handler) if event in self._changes else handler)


def _change_handlers(module: ModuleType, **changes: Any) -> None:
    """Let `load_extension` pass every handler through the change for its event."""
    original = module.load_extension

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        async def imported(source: Any) -> Any:
            loaded = await _settled(import_module(source))
            return SimpleNamespace(setup=lambda context: loaded.setup(_Changing(context, changes)))

        return await original(source, host=host, is_trusted=is_trusted, import_module=imported)

    module.load_extension = load_extension


async def _settled(value: Any) -> Any:
    if inspect.isawaitable(value):
        value = await value
    return value


def inject(module: ModuleType) -> None:
    """Skip after hooks once one has not come back well."""
    broken: set[tuple[str, Any]] = set()

    def change(handler: Any) -> Any:
        async def silenced(result: Any) -> Any:
            key = (result.tool_call_id, result.timestamp)
            if key in broken:
                return None
            broken.add(key)
            answer = await _settled(handler(result))
            broken.discard(key)
            return answer

        return silenced

    _change_handlers(module, after_tool_result=change)
