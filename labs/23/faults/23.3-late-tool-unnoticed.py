"""A tool that is registered after binding is not told to the core."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.api"


class _Unaware:
    """A core that hears of no new tools."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def refresh_tools(self) -> None:
        """Look at nothing."""


def inject(module: ModuleType) -> None:
    """Bind runtimes to a core that hears nothing."""
    original = module.ExtensionRuntime.bind

    def bind(self: Any, actions: Any, *given: Any, **options: Any) -> None:
        original(self, _Unaware(actions), *given, **options)

    module.ExtensionRuntime.bind = bind
