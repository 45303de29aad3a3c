"""A wheel of a course: its own pyproject says what goes in, an edition what of its folders stays out.

Decision: built from a copy of the checkout by the build backend that pyproject names, in this environment, so
that nothing is fetched and an edition needs no build settings of its own.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course
from course.edition import course_files, edition_files, edition_note
from course.errors import CourseError, EnvironmentFault, InputError
from course.leftovers import partial_folder, sweep_partials, temporary_folder
from course.places import CONTENT_FOLDERS
from course.process import child_environment, run_process

_KIND = "wheel"
_DEADLINE = 600.0
_AT_HOME = frozenset((*CONTENT_FOLDERS, "tests", "tools", "build", "dist", "mutants", "node_modules"))
_VERSION = re.compile(r'(?m)^(\[project\]\n(?:[^\[].*\n|\n)*?version\s*=\s*")([^"+]+)(")')
_BUILD = (
    "import importlib, sys; name, _, inner = sys.argv[1].partition(':'); "
    "backend = importlib.import_module(name); "
    "backend = getattr(backend, inner) if inner else backend; backend.build_wheel(sys.argv[2])"
)


class WheelError(CourseError):
    """A wheel can't be made of the course."""


def build_wheel(course: Course, hides: Chapter | None, out: Path, judge: Callable[[Path], None]) -> Path:
    """Build a wheel into the folder `out`, and give its path: without answers from chapter `hides` on.

    `judge` sees it first, and what it raises keeps it from being there. Raises InputError, WheelError,
    EnvironmentFault.
    """
    backend = _require_backend(course)
    try:
        out.mkdir(parents=True, exist_ok=True)
        sweep_partials(out, _KIND)
        with temporary_folder(_KIND) as source, partial_folder(out, _KIND) as work:
            _stage(course, hides, source)
            wheel = _run(backend, source, work)
            judge(wheel)
            return wheel.replace(out / wheel.name)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"{out} is not a directory.", "Name one by --out, as --out dist.") from error
    except PermissionError as error:
        raise EnvironmentFault(
            f"{out} can't be written: {error.strerror}.", "Name another by --out."
        ) from error


def _require_backend(course: Course) -> str:
    """The build backend that the course's pyproject names, which is installed. Raises InputError, …."""
    file = course.root / "pyproject.toml"
    if not file.is_file():
        raise InputError(
            f"{course.root} has no pyproject.toml, which says what a wheel of it is called and holds.",
            "Run it in the course's checkout; `course new` begins one with a pyproject.toml.",
        )
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
        system = data["build-system"]
        backend, requires = str(system["build-backend"]), [str(one) for one in system["requires"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WheelError(
            f"{file} names no build backend: {error}.", "Give it a [build-system] table."
        ) from error
    name = backend.partition(":")[0].partition(".")[0]
    if importlib.util.find_spec(name) is None:
        wanted = " ".join(f"'{one}'" for one in requires)
        raise EnvironmentFault(
            f"{name} is not installed, with which {file} says that a wheel is built.",
            f"{sys.executable} -m pip install {wanted}",
        )
    return backend


def _stage(course: Course, hides: Chapter | None, source: Path) -> None:
    """Copy what the wheel is built from."""
    for path in sorted(course.root.iterdir()):
        if not _stays(path):
            _copy(path, source / path.name)
    for folder in CONTENT_FOLDERS:
        # The build settings name it, also where an edition has nothing in it.
        (source / folder).mkdir()
    names: Iterable[str] = course_files(course) if hides is None else edition_files(course, hides)
    for name in names:
        _copy(course.root / name, source / name)
    if hides is not None:
        name, text = edition_note(course, hides)
        (source / name).write_text(text, "utf-8")
        _name_edition(source / "pyproject.toml", hides)


def _stays(path: Path) -> bool:
    """Whether a file or folder of the checkout is no part of any wheel: tests, practices, environments."""
    other = (path / ".course" / "practice.toml").is_file() or (path / "pyvenv.cfg").is_file()
    return path.name.startswith(".") or path.name in _AT_HOME or other


def _copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _name_edition(file: Path, hides: Chapter) -> None:
    """Have the version say that this is a learner's edition; one that is computed stays as it is."""
    text = file.read_text("utf-8")
    file.write_text(_VERSION.sub(rf"\g<1>\g<2>+learner{hides.id}\g<3>", text, count=1), "utf-8")


def _run(backend: str, source: Path, work: Path) -> Path:
    command = [sys.executable, "-c", _BUILD, backend, str(work)]
    finished = run_process(command, cwd=source, env=child_environment(), deadline=_DEADLINE)
    wheels = list(work.glob("*.whl"))
    if finished.status != 0 or len(wheels) != 1:
        said = (finished.stderr or finished.stdout).strip().splitlines() or ["nothing was said"]
        raise WheelError(
            f"{backend} can't build the wheel: {said[-1]}", "Mend pyproject.toml, then run this again."
        )
    return wheels[0]
