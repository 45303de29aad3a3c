"""Making a practice: what it begins with, and how it comes into its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from course.catalog import Chapter, Course, NotInEdition
from course.git import UPLOAD_PACK, Git
from course.history import History, export_commit, practice_key, practice_ref
from course.placement import Destination, place
from course.practice import SOURCE, START_REF, Practice
from course.trees import lab_tests, write_tree


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
        _note_source(start.course.root, folder / SOURCE)

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
