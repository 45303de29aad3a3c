"""A practice: the learner's own repository, recognised by .course/practice.toml, made from the history."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course, is_course
from course.errors import CourseError, InputError
from course.git import UPLOAD_PACK, Git
from course.history import History, practice_key, practice_ref
from course.manifest import FORMAT
from course.placement import Destination, place

MARK = Path(".course", "practice.toml")
START_REF = "refs/course/start"
_SOURCE = Path(".course", "source.toml")


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
    folder = (_read_toml(root / _SOURCE) or {}).get("folder")
    source = Path(folder) if isinstance(folder, str) and is_course(Path(folder)) else None
    course, chapter, language = values
    return Practice(root=root, course=course, chapter=chapter, language=language, source=source)


def _read_toml(path: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a new practice begins with; `finish` adds to the directory before it is put in its place."""

    course: Course
    history: History
    chapter: Chapter
    language: str
    finish: Callable[[Path], None] | None = None


def make_practice(start: Start, destination: Destination) -> None:
    """Put a new practice at the destination, whole or not at all. Raises CourseError."""

    def build(folder: Path) -> None:
        git = Git(folder)
        git.run("init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main", ".")
        ref = practice_ref(start.chapter, start.language)
        git.run(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--update-head-ok",
            f"--upload-pack={UPLOAD_PACK}", str(start.history.repository),
            f"{ref}:refs/heads/main", f"{ref}:{START_REF}",
        )  # fmt: skip
        git.run("read-tree", "--reset", "-u", "HEAD")
        if start.finish is not None:
            start.finish(folder)
        _note_source(start.course.root, folder / _SOURCE)

    place(destination, build)


def _note_source(root: Path, file: Path) -> None:
    """Write down where the course lies; a name that isn't Unicode can't be, and the course is looked for."""
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or c in '"\\\x7f' else c for c in str(root))
    if not any("\ud800" <= c <= "\udfff" for c in escaped):
        file.write_text(f'folder = "{escaped}"\n', "utf-8")


def start_commit(history: History, chapter: Chapter, language: str) -> str:
    """The id of a practice's starter commit."""
    return history.practices[practice_key(chapter, language)]
