"""A tool is in the registry as soon as setup asks for it."""

import inspect
from types import ModuleType, SimpleNamespace
from typing import Any


class _Direct:
    """An extension's context whose tools go straight to the registry."""

    def __init__(self, inner: Any, registry: Any, refused: type[Exception]) -> None:
        self._inner = inner
        self._registry = registry
        self._refused = refused
        self.on = inner.on

    def register_tool(self, tool: Any) -> None:
        if tool.name in self._registry.names():
            raise self._refused(f"there is a tool {tool.name!r}")
        self._registry.register(tool)


def inject(module: ModuleType) -> None:
    """Let setup write to the host's registry."""
    create, load = module.create_extension_host, module.load_extension
    registries: dict[int, Any] = {}
    hosts: list[Any] = []  # kept, so that no id is used twice

    def create_extension_host(registry: Any, **options: Any) -> Any:
        hosts.append(create(registry, **options))
        registries[id(hosts[-1])] = registry
        return hosts[-1]

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        async def imported(source: Any) -> Any:
            loaded = import_module(source)
            loaded = await loaded if inspect.isawaitable(loaded) else loaded
            setup = getattr(loaded, "setup", None)
            direct = registries[id(host)]
            if callable(setup):
                return SimpleNamespace(
                    setup=lambda context: setup(_Direct(context, direct, module.ExtensionError))
                )
            return loaded

        return await load(source, host=host, is_trusted=is_trusted, import_module=imported)

    module.create_extension_host = create_extension_host
    module.load_extension = load_extension
