"""Hooks of a failed extension stay active."""

import inspect
from types import ModuleType, SimpleNamespace
from typing import Any


class _Noting:
    """An extension's context that notes the hooks it stages."""

    def __init__(self, inner: Any, staged: list[Any]) -> None:
        self._inner = inner
        self._staged = staged
        self.register_tool = inner.register_tool

    def on(self, event: Any, handler: Any) -> None:
        self._inner.on(event, handler)
        self._staged.append((event, handler))


def inject(module: ModuleType) -> None:
    """Load the hooks of an extension that failed under another id."""
    original = module.load_extension
    failures: list[str] = []

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        staged: list[Any] = []

        async def imported(source: Any) -> Any:
            loaded = import_module(source)
            loaded = await loaded if inspect.isawaitable(loaded) else loaded
            setup = getattr(loaded, "setup", None)
            if callable(setup):
                return SimpleNamespace(setup=lambda context: setup(_Noting(context, staged)))
            return loaded

        def hooks_only(context: Any) -> None:
            for event, handler in staged:
                context.on(event, handler)

        try:
            return await original(source, host=host, is_trusted=is_trusted, import_module=imported)
        except Exception:
            failures.append(source.id)
            await original(
                module.ExtensionSource(f"failed {len(failures)}", source.path),
                host=host,
                is_trusted=lambda source: True,
                import_module=lambda source: SimpleNamespace(setup=hooks_only),
            )
            raise

    module.load_extension = load_extension
