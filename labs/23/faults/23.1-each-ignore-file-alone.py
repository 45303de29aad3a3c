"""An entry that any one of the ignore files excludes is out, whatever the others say."""

from pathlib import Path
from types import ModuleType
from typing import Any

from pathspec import GitIgnoreSpec

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Judge what the scan found by each ignore file on its own."""
    original = module.collect_auto_extensions

    def ignored(root: Path, path: str) -> bool:
        files = [root / name for name in (".gitignore", ".ignore", ".fdignore")]
        rules = [each.read_text(encoding="utf-8").splitlines() for each in files if each.is_file()]
        inside = Path(path).relative_to(root).as_posix()
        return any(GitIgnoreSpec.from_lines(lines).match_file(inside) for lines in rules)

    def collect_auto_extensions(root: Any, **options: Any) -> list[str]:
        return [path for path in original(root, **options) if not ignored(Path(root), path)]

    module.collect_auto_extensions = collect_auto_extensions
