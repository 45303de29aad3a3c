"""The cache holds extensions that have run, not factories."""

import os
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.loader"


def inject(module: ModuleType) -> None:
    """Hand out an extension again where its path was loaded before."""

    class Hoarding(module.ExtensionLoader):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.executed: dict[str, Any] = {}

        async def load_cached(self, paths: Any, *, cwd: Any, inline: Any = (), **options: Any) -> Any:
            result = await super().load_cached([], cwd=cwd, **options)
            for each in paths:
                path = each if isinstance(each, str) else each.path
                key = os.path.realpath(os.path.join(cwd, path))  # noqa: PTH118 - paths are strings here
                if key not in self.executed:
                    options["runtime"] = result.runtime
                    loaded = await super().load_cached([each], cwd=cwd, **options)
                    result.errors += loaded.errors
                    if not loaded.extensions:
                        continue
                    [self.executed[key]] = loaded.extensions
                result.extensions.append(self.executed[key])
            options["runtime"] = result.runtime
            result.extensions += (await super().load_cached([], cwd=cwd, inline=inline, **options)).extensions
            return result

        def clear(self) -> None:
            super().clear()
            vars(self).setdefault("executed", {}).clear()

    module.ExtensionLoader = Hoarding
