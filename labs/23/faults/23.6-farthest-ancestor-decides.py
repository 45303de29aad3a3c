"""Of several answers the one for the highest directory counts."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.trust"


def inject(module: ModuleType) -> None:
    """Ask for the directories from the top."""
    original = module.TrustStore.get

    def get(self: Any, directory: Any) -> Any:
        start = Path(os.path.realpath(directory))
        for each in reversed([start, *start.parents]):
            if (known := original(self, each)) is not None:
                return known
        return None

    module.TrustStore.get = get
