"""A before hook that doesn't answer in time allows the call."""

import asyncio
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
    """Answer for before hooks before the host loses patience."""
    create = module.create_extension_host
    patience = [5.0]

    def create_extension_host(registry: Any, *, hook_timeout: float = 5.0, **options: Any) -> Any:
        patience[0] = hook_timeout / 2
        return create(registry, hook_timeout=hook_timeout, **options)

    def change(handler: Any) -> Any:
        async def impatient(call: Any) -> Any:
            answer = asyncio.ensure_future(_settled(handler(call)))
            await asyncio.wait({answer}, timeout=patience[0])
            if answer.done():
                return answer.result()
            answer.cancel()
            return module.HookDecision("allow")

        return impatient

    module.create_extension_host = create_extension_host
    _change_handlers(module, before_tool_call=change)
