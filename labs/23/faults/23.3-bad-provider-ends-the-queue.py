"""The first provider that fails keeps the rest of the queue from being registered."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.api"


class _UpToTheFirstFailure:
    """A core that registers no provider after one has failed, as long as it is being bound."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def register_provider(self, name: str, config: Any) -> None:
        if self.failed:
            return
        try:
            self.inner.register_provider(name, config)
        except Exception:
            self.failed = True
            raise


def inject(module: ModuleType) -> None:
    """Bind runtimes to a core that gives up."""
    original = module.ExtensionRuntime.bind

    def bind(self: Any, actions: Any, *given: Any, **options: Any) -> None:
        core = _UpToTheFirstFailure(actions)
        original(self, core, *given, **options)
        core.failed = False

    module.ExtensionRuntime.bind = bind
