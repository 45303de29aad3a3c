"""The second phase loads every path of the final list, those of the first phase again."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Load once more, all of it, when trust was decided."""
    original = module.ResourceLoader.reload

    async def reload(self: Any, resolve_trust: Any = None) -> Any:
        result = await original(self, resolve_trust)
        return result if resolve_trust is None else await original(self)

    module.ResourceLoader.reload = reload
