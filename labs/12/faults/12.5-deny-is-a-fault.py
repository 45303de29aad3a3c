"""A deny is reported as a fault."""

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
    """Send a diagnostic for every deny."""
    create = module.create_extension_host
    observers: list[Any] = []

    def create_extension_host(registry: Any, *, on_diagnostic: Any = None, **options: Any) -> Any:
        observers[:] = [on_diagnostic] if on_diagnostic else []
        return create(registry, on_diagnostic=on_diagnostic, **options)

    def change(handler: Any) -> Any:
        async def reporting(call: Any) -> Any:
            answer = await _settled(handler(call))
            if getattr(answer, "decision", None) == "deny":
                for observe in observers:
                    observe(module.ExtensionDiagnostic("", "before_tool_call", "error", answer.reason))
            return answer

        return reporting

    module.create_extension_host = create_extension_host
    _change_handlers(module, before_tool_call=change)
