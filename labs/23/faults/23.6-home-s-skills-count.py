"""The skills in the user's own home require trust, too."""

from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.trust"


def inject(module: ModuleType) -> None:
    """Look one directory further up."""
    original = module.requires_trust

    def requires_trust(cwd: Any, *, home: Any) -> bool:
        return bool(original(cwd, home=Path(home).parent))

    module.requires_trust = requires_trust
