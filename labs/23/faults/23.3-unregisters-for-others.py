"""An un-registration in the queue takes out every entry of that name, whoever put it in."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.api"


class _Without:
    """A core that does not get some of the providers while it is being bound."""

    def __init__(self, inner: Any, names: set[str]) -> None:
        self.inner = inner
        self.names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def register_provider(self, name: str, config: Any) -> None:
        if name not in self.names:
            self.inner.register_provider(name, config)


def inject(module: ModuleType) -> None:
    """Remember what was un-registered last, and drop it on binding."""
    api, bind = module.ExtensionAPI, module.ExtensionRuntime.bind
    register, unregister = api.register_provider, api.unregister_provider
    gone: set[str] = set()

    def register_provider(self: Any, name: str, config: Any) -> None:
        register(self, name, config)
        gone.discard(name)

    def unregister_provider(self: Any, name: str) -> None:
        unregister(self, name)
        gone.add(name)

    def bound(self: Any, actions: Any, *given: Any, **options: Any) -> None:
        core = _Without(actions, set(gone))
        gone.clear()
        bind(self, core, *given, **options)
        core.names.clear()

    api.register_provider, api.unregister_provider = register_provider, unregister_provider
    module.ExtensionRuntime.bind = bound
