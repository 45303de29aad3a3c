"""The cache outlives a change of the working directory."""

from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Load as if the directory were still the first one."""

    class Settled(module.ExtensionLoader):  # type: ignore[name-defined, misc]
        home: Any = None

        async def load_cached(self, paths: Any, *, cwd: Any, **options: Any) -> Any:
            self.home = self.home or cwd
            moved = [
                str(Path(cwd, each)) if isinstance(each, str) and each[0] != "<" else each for each in paths
            ]
            return await super().load_cached(paths if cwd == self.home else moved, cwd=self.home, **options)

    module.ExtensionLoader = Settled
