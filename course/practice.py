"""A practice: the learner's own repository, recognised by .course/practice.toml, made from the history."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course, NotInEdition
from course.errors import CourseError, InputError
from course.git import UPLOAD_PACK, Git
from course.history import History, export_commit, practice_key, practice_ref
from course.manifest import FORMAT
from course.placement import Destination, place
from course.places import is_course
from course.trees import lab_tests, write_tree

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
    """What a new practice begins with: `ref` of the history, by default the chapter's start, if any at all.

    `finish` adds to the directory before it is put in its place.
    """

    course: Course
    history: History
    chapter: Chapter
    language: str
    finish: Callable[[Path], None] | None = None
    ref: str | None = None


def make_practice(start: Start, destination: Destination) -> None:
    """Put a new practice at the destination, whole or not at all. Raises CourseError."""
    ref = start.ref
    if ref is None:
        start_commit(start.history, start.chapter, start.language)
        ref = practice_ref(start.chapter, start.language)

    def build(folder: Path) -> None:
        git = Git(folder)
        git.run("init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main", ".")
        if ref:
            _fetch(git, start.history, ref)
        if start.finish is not None:
            start.finish(folder)
        _note_source(start.course.root, folder / _SOURCE)

    place(destination, build)


def _fetch(git: Git, history: History, ref: str) -> None:
    git.run(
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--update-head-ok",
        f"--upload-pack={UPLOAD_PACK}", str(history.repository),
        f"{ref}:refs/heads/main", f"{ref}:{START_REF}",
    )  # fmt: skip
    git.run("read-tree", "--reset", "-u", "HEAD")


def _note_source(root: Path, file: Path) -> None:
    """Write down where the course lies; a name that isn't Unicode can't be, and the course is looked for."""
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or c in '"\\\x7f' else c for c in str(root))
    if not any("\ud800" <= c <= "\udfff" for c in escaped):
        file.write_text(f'folder = "{escaped}"\n', "utf-8")


def start_commit(history: History, chapter: Chapter, language: str) -> str:
    """The id of a practice's starter commit. Raises NotInEdition where a learner's edition can't make it."""
    commit = history.practices.get(practice_key(chapter, language))
    if commit is None:
        raise NotInEdition(
            f"This is a learner's edition without the reference that chapter {chapter.id} starts from.",
            f"Carry your own code on: `course practice {chapter.id} DIR --from PRACTICE`, your practice "
            "of the chapter before.",
        )
    return commit


def demand_beginning(course: Course, chapter: Chapter) -> None:
    """Raise NotInEdition for a chapter that a learner's edition can't begin in any way."""
    if course.edition is not None and chapter.id in course.edition.withheld:
        raise NotInEdition(
            f"Chapter {chapter.id} grows files whose answers this learner's edition leaves out.",
            f"Whoever teaches makes one for it: `course build --learner --chapter {chapter.id}`.",
        )


def export_start(course: Course, history: History, practice: Practice, folder: Path) -> None:
    """Write the tree that a practice began with, its tests as the course has them. Raises CourseError.

    Where a learner's edition can't make that start, it is taken from the practice's own repository.
    """
    chapter = course.practice_chapter(practice.chapter)
    if practice_key(chapter, practice.language) in history.practices or chapter.given:
        export_commit(history, start_commit(history, chapter, practice.language), folder)
        return
    export_commit(replace(history, repository=practice.root / ".git"), START_REF, folder)
    for step in course.until(chapter):
        write_tree(lab_tests(step), folder)
