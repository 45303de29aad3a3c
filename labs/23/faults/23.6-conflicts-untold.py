"""Nothing is said of names that two extensions share."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Leave conflicts out of the errors."""
    original = module.ResourceLoader.reload

    async def reload(self: Any, resolve_trust: Any = None) -> Any:
        result = await original(self, resolve_trust)
        result.errors[:] = [each for each in result.errors if " conflicts with " not in each.error]
        return result

    module.ResourceLoader.reload = reload
