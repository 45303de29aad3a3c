"""Of two resources of one kind and name the later root's wins."""

import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Let `discover_resources` go through the roots backwards."""
    original = module.discover_resources

    async def discover_resources(roots: Sequence[str | os.PathLike[str]]) -> Any:
        return await original(list(reversed(roots)))

    module.discover_resources = discover_resources
