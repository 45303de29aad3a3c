"""Commit registers tools one by one, so those before a conflict stay."""

import inspect
from types import ModuleType, SimpleNamespace
from typing import Any


class _Noting:
    """An extension's context that notes the tools it stages."""

    def __init__(self, inner: Any, staged: list[Any]) -> None:
        self._inner = inner
        self._staged = staged
        self.on = inner.on

    def register_tool(self, tool: Any) -> None:
        self._inner.register_tool(tool)
        self._staged.append(tool)


def inject(module: ModuleType) -> None:
    """Leave the first tools of an extension in the registry if a later one is refused."""
    create, load = module.create_extension_host, module.load_extension
    registries: dict[int, Any] = {}
    hosts: list[Any] = []  # kept, so that no id is used twice

    def create_extension_host(registry: Any, **options: Any) -> Any:
        hosts.append(create(registry, **options))
        registries[id(hosts[-1])] = registry
        return hosts[-1]

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        staged: list[Any] = []

        async def imported(source: Any) -> Any:
            loaded = import_module(source)
            loaded = await loaded if inspect.isawaitable(loaded) else loaded
            setup = getattr(loaded, "setup", None)
            if callable(setup):
                return SimpleNamespace(setup=lambda context: setup(_Noting(context, staged)))
            return loaded

        try:
            return await load(source, host=host, is_trusted=is_trusted, import_module=imported)
        except module.ExtensionError:
            for tool in staged:
                if tool.name in registries[id(host)].names():
                    break
                registries[id(host)].register(tool)
            raise

    module.create_extension_host = create_extension_host
    module.load_extension = load_extension
