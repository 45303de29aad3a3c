""" "Builds": every file byte-compiles, and every module imports in a fresh interpreter without a word."""

from __future__ import annotations

import sys
from pathlib import Path

from course.errors import CourseError
from course.process import child_environment, run_process

_IMPORT = "import importlib, sys; sys.path.insert(0, sys.argv[1]); importlib.import_module(sys.argv[2])"


class BuildFailed(CourseError):
    """A tree does not build; the text names the file or module and says why."""


def build(tree: Path, package: str) -> int:
    """Build a tree's package and give the number of its modules. Raises BuildFailed."""
    source = tree / "src"
    modules = []
    for file in sorted((source / package).rglob("*.py")):
        _compile(file, tree)
        parts = file.relative_to(source).with_suffix("").parts
        modules.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    if not modules:
        raise BuildFailed(f"there is no package {package} in {source}")
    for module in modules:
        _import(module, source, tree)
    return len(modules)


def _compile(file: Path, tree: Path) -> None:
    name = file.relative_to(tree).as_posix()
    try:
        compile(file.read_bytes(), name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise BuildFailed(f"{name}{f':{line}' if line else ''}: {getattr(error, 'msg', error)}") from error


def _import(module: str, source: Path, tree: Path) -> None:
    finished = run_process(
        [sys.executable, "-P", "-W", "error", "-c", _IMPORT, source, module],
        cwd=tree,
        env=child_environment(),
        deadline=60,
    )
    if finished.timed_out:
        raise BuildFailed(f"importing {module} did not end within 60 s")
    if finished.status != 0 or finished.stdout or finished.stderr:
        said = (finished.stderr or finished.stdout or f"status {finished.status}").strip().splitlines()
        raise BuildFailed(f"{module} does not import cleanly: {said[-1] if said else ''}")
