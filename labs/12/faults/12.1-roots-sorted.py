"""The roots are sorted before they are searched."""

import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Let `discover_resources` search the roots by name."""
    original = module.discover_resources

    async def discover_resources(roots: Sequence[str | os.PathLike[str]]) -> Any:
        return await original(sorted(roots, key=os.fspath))

    module.discover_resources = discover_resources
