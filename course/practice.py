"""A practice: a learner's own repository, recognised by .course/practice.toml."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from course.errors import CourseError, InputError
from course.manifest import FORMAT
from course.places import is_course

MARK = Path(".course", "practice.toml")
START_REF = "refs/course/start"
SOURCE = Path(".course", "source.toml")


class PracticeError(CourseError):
    """A practice directory is damaged."""


@dataclass(frozen=True, kw_only=True)
class Practice:
    """A practice directory: which chapter of which course, in which language, made from which folder."""

    root: Path
    course: str
    chapter: str
    language: str
    source: Path | None

    @property
    def state(self) -> Path:
        """The folder of the engine's own notes: evidence, hints shown, records."""
        return self.root / ".course"


def find_practice(start: Path) -> Practice | None:
    """The practice that `start` lies in, None where it lies in none. Raises PracticeError."""
    here = start.resolve()
    for folder in (here, *here.parents):
        if (folder / MARK).is_file():
            return _read_practice(folder)
    return None


def require_practice(start: Path) -> Practice:
    """The practice that `start` lies in. Raises InputError where it lies in none."""
    practice = find_practice(start)
    if practice is None:
        raise InputError(
            f"{start.resolve()} is not inside a practice.",
            "Make one by `course practice N ./mywork`, then `cd mywork`; or name it: `course -C DIR …`.",
        )
    return practice


def _read_practice(root: Path) -> Practice:
    data = _read_toml(root / MARK) or {}
    values = [value for key in ("course", "chapter", "language") if isinstance(value := data.get(key), str)]
    if data.get("format") != FORMAT or len(values) < 3:
        raise PracticeError(
            f"{root / MARK} is not as this engine writes it.",
            f"`git -C {shlex.quote(str(root))} checkout -- {MARK.as_posix()}` brings it back.",
        )
    folder = (_read_toml(root / SOURCE) or {}).get("folder")
    source = Path(folder) if isinstance(folder, str) and is_course(Path(folder)) else None
    course, chapter, language = values
    return Practice(root=root, course=course, chapter=chapter, language=language, source=source)


def _read_toml(path: Path) -> dict[str, Any] | None:
    try:
        return tomli.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
