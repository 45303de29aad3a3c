"""Where nobody is there to ask, the project is trusted."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Answer yes in the place of nobody."""
    original = module.ResourceLoader.reload

    async def reload(self: Any, resolve_trust: Any = None) -> Any:
        return await original(self, resolve_trust or (lambda runner: True))

    module.ResourceLoader.reload = reload
