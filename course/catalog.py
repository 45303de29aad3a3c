"""A course on disk: where it is found, its chapters and labs, and the paths that follow from their ids."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course.errors import CourseError, InputError
from course.manifest import (
    ChapterManifest,
    CourseManifest,
    FaultEntry,
    HintsManifest,
    LabEntry,
    ManifestError,
    QuizManifest,
    Text,
    read_manifest,
)
from course.relations import check_chapter, check_course

ENTRY_POINTS = "course.courses"
CONTENT_FOLDERS = ("checkpoints", "labs", "starters", "solutions")


class CourseNotFound(InputError):
    """There is no course where one was looked for."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One chapter: its manifest, and the folders computed from its id."""

    root: Path
    manifest: ChapterManifest

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def is_practice(self) -> bool:
        return self.manifest.mode == "practice"

    @property
    def labs_dir(self) -> Path:
        return self.root / "labs" / self.id

    @property
    def starter_dir(self) -> Path:
        return self.root / "starters" / self.id

    @property
    def solution_dir(self) -> Path:
        return self.root / "solutions" / self.id

    @property
    def marker(self) -> str:
        return f"lab{self.id}"

    @property
    def extra_marker(self) -> str:
        return f"extra{self.id}"

    @property
    def test_count(self) -> int:
        return sum(lab.tests for lab in self.manifest.lab)

    def handout(self, language: str) -> Path:
        return self.labs_dir / f"handout.{language}.md"

    def lab(self, lab_id: str) -> LabEntry:
        """The lab of this id. Raises InputError naming those there are."""
        for lab in self.manifest.lab:
            if lab.id == lab_id:
                return lab
        known = ", ".join(lab.id for lab in self.manifest.lab)
        raise InputError(f"Chapter {self.id} has no lab {lab_id}.", f"Its labs: {known}.")

    def faults_of(self, lab_id: str) -> list[FaultEntry]:
        return [fault for fault in self.manifest.fault if fault.lab == lab_id]

    def hints(self) -> HintsManifest:
        """The chapter's hints. Raises ManifestError."""
        return read_manifest(self.labs_dir / "hints.toml", HintsManifest, f"labs/{self.id}/hints.toml")

    def quiz(self) -> QuizManifest:
        """The chapter's questions. Raises ManifestError."""
        return read_manifest(self.labs_dir / "quiz.toml", QuizManifest, f"labs/{self.id}/quiz.toml")


@dataclass(frozen=True)
class Course:
    """A whole course, every manifest read and checked."""

    root: Path
    manifest: CourseManifest
    chapters: tuple[Chapter, ...]

    @cached_property
    def installed(self) -> bool:
        """Whether a wheel brought this course: then it is bound by its pins."""
        return any(path == self.root.resolve() for _, path in installed_courses())

    @cached_property
    def by_id(self) -> dict[str, Chapter]:
        return {chapter.id: chapter for chapter in self.chapters}

    @property
    def practice_chapters(self) -> tuple[Chapter, ...]:
        return tuple(chapter for chapter in self.chapters if chapter.is_practice)

    def chapter(self, number: str) -> Chapter:
        """The chapter a user means by `12` or `07` or `7`. Raises InputError."""
        known = ", ".join(chapter.id for chapter in self.chapters)
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"{number!r} is not a chapter number.", f"Chapters: {known}.")
        chapter = self.by_id.get(number) or self.by_id.get(number.zfill(2))
        if chapter is None:
            raise InputError(f"This course has no chapter {number}.", f"Its chapters: {known}.")
        return chapter

    def practice_chapter(self, number: str) -> Chapter:
        """The chapter, if it can be practised. Raises InputError."""
        chapter = self.chapter(number)
        if not chapter.is_practice:
            known = ", ".join(chapter.id for chapter in self.practice_chapters)
            raise InputError(
                f"Chapter {chapter.id} is part of the foundation: it is given whole and has no starter yet.",
                f"Chapters to practise: {known}. `course checkpoint {chapter.id}` shows this one.",
            )
        return chapter

    def lab(self, lab_id: str) -> tuple[Chapter, LabEntry]:
        """The lab of an id as `12.1`, with its chapter. Raises InputError."""
        number, dot, _ = lab_id.partition(".")
        if not dot:
            raise InputError(f"{lab_id!r} is not a lab.", "Labs are written chapter.number, as 12.1.")
        chapter = self.practice_chapter(number)
        return chapter, chapter.lab(f"{chapter.id}.{lab_id.partition('.')[2]}")

    def until(self, chapter: Chapter) -> tuple[Chapter, ...]:
        """The chapters from the first to this one, it included."""
        return self.chapters[: self.chapters.index(chapter) + 1]

    def parent(self, chapter: Chapter) -> Chapter | None:
        index = self.chapters.index(chapter)
        return self.chapters[index - 1] if index else None


def is_course(folder: Path) -> bool:
    """Whether a folder is the top of a course."""
    return (folder / "checkpoints" / "course.toml").is_file()


def load_course(root: Path) -> Course:
    """Read and check every manifest of the course at `root`. Raises ManifestError, CourseNotFound."""
    if not is_course(root):
        raise CourseNotFound(
            f"{root} is not a course: it has no checkpoints/course.toml.",
            "Give the top folder of a course by --course DIR.",
        )
    name = "checkpoints/course.toml"
    manifest = read_manifest(root / name, CourseManifest, name)
    check_course(manifest, name)
    chapters = tuple(_load_chapter(root, chapter_id, manifest) for chapter_id in manifest.chapters)
    return Course(root, manifest, chapters)


def _load_chapter(root: Path, chapter_id: str, course: CourseManifest) -> Chapter:
    name = f"labs/{chapter_id}/lab.toml"
    manifest = read_manifest(root / name, ChapterManifest, name)
    if manifest.id != chapter_id:
        raise ManifestError(name, "id", f'expected "{chapter_id}", the folder\'s name, got {manifest.id!r}')
    check_chapter(manifest, course, name)
    return Chapter(root=root, manifest=manifest)


def find_course(start: Path, explicit: Path | None = None, recorded: Path | None = None) -> Course:
    """Load the course that a user in `start` means.

    In this order: the one named by --course, the one a practice was made from, the checkout that `start`
    lies in, the checkout that this engine runs from, the installed one. Raises CourseNotFound, ManifestError.
    """
    if explicit is not None:
        return load_course(explicit.resolve())
    for folder in _checkouts(start, recorded):
        if is_course(folder):
            return load_course(folder)
    installed = dict(installed_courses())
    if len(installed) == 1:
        return load_course(next(iter(installed.values())))
    if not installed:
        raise CourseNotFound(
            "No course was found here, and none is installed.",
            "Start from a course's folder, name it by --course DIR, or install a course's wheel.",
        )
    names = ", ".join(f"{name} ({path})" for name, path in installed.items())
    raise CourseNotFound("More than one course is installed.", f"Name one by --course DIR: {names}.")


def _checkouts(start: Path, recorded: Path | None) -> Iterator[Path]:
    if recorded is not None:
        yield recorded
    try:
        here = start.resolve()
    except OSError as error:
        raise CourseError(f"{start} can't be resolved: {error.strerror}.") from error
    yield from (here, *here.parents)
    yield Path(__file__).resolve().parent.parent


def installed_courses() -> Iterator[tuple[str, Path]]:
    """Name and folder of each course that a wheel brought (entry point group `course.courses`)."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        spec = importlib.util.find_spec(point.value)
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            if is_course(Path(place)):
                yield point.name, Path(os.path.realpath(place))


def pick(text: Text, language: str) -> str:
    """A manifest's text in a language, or in the first one it has."""
    return text.get(language) or next(iter(text.values()))
