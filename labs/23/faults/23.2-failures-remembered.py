"""A failed load is remembered, and told again without another try."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Leave out of every later load what has failed in one."""

    class Resentful(module.ExtensionLoader):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.failed: dict[str, Any] = {}

        async def load_cached(self, paths: Any, **options: Any) -> Any:
            names = [each if isinstance(each, str) else each.path for each in paths]
            fresh = [each for each, name in zip(paths, names, strict=True) if name not in self.failed]
            result = await super().load_cached(fresh, **options)
            known = [self.failed[name] for name in names if name in self.failed]
            self.failed |= {each.path: each for each in result.errors}
            result.errors += known
            return result

    module.ExtensionLoader = Resentful
