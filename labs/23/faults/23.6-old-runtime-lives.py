"""The runtime of what was replaced goes on working."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.api"


def inject(module: ModuleType) -> None:
    """End no runtime."""

    def invalidate(self: Any, reason: str) -> None:
        return None

    module.ExtensionRuntime.invalidate = invalidate
