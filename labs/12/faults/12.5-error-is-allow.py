"""A before hook that raises allows the call."""

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
    """Catch what before hooks raise, and allow the call."""

    def change(handler: Any) -> Any:
        async def forgiving(call: Any) -> Any:
            try:
                return await _settled(handler(call))
            except Exception:  # noqa: BLE001 - this is the mistake
                return module.HookDecision("allow")

        return forgiving

    _change_handlers(module, before_tool_call=change)
