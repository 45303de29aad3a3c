"""A load that is under way while the cache is cleared fills it again."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Pass over what is cleared while a load is under way."""

    class Overtaken(module.ExtensionLoader):  # type: ignore[name-defined, misc]
        loads = 0

        async def load_cached(self, paths: Any, **options: Any) -> Any:
            self.loads += 1
            try:
                return await super().load_cached(paths, **options)
            finally:
                self.loads -= 1

        def clear(self) -> None:
            if not self.loads:
                super().clear()

    module.ExtensionLoader = Overtaken
