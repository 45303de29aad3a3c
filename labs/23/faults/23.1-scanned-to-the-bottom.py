"""A sub-folder without an entry is searched in its turn."""

from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"

_ENTRIES = ("pyproject.toml", "index.py", "__init__.py")


def inject(module: ModuleType) -> None:
    """Let both scans go down where a folder has nothing to offer."""

    def deep(scan: Any) -> Any:
        def scanned(root: Any, **options: Any) -> Any:
            found = scan(root, **options)
            folders = [each for each in Path(root).glob("[!._]*") if each.is_dir()]
            for folder in sorted(folders):
                entries = [each for name in _ENTRIES if (each := folder / name).is_file()]
                if not entries and folder.name != "node_modules":
                    found = sorted([*found, *scanned(folder, **options)])
            return found

        return scanned

    for name in ("discover_extensions_in_dir", "collect_auto_extensions"):
        setattr(module, name, deep(getattr(module, name)))
