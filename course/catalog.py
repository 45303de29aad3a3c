"""A course on disk: where it is found, its chapters and labs, and the paths that follow from their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course.errors import CourseError, InputError
from course.manifest import (
    ChapterManifest,
    CourseManifest,
    EditionManifest,
    HintsManifest,
    LabEntry,
    ManifestError,
    QuizManifest,
    Text,
    read_manifest,
)
from course.places import installed_courses, is_course
from course.relations import check_chapter, check_course, check_edition

EDITION = "checkpoints/edition.toml"


class CourseNotFound(InputError):
    """There is no course where one was looked for."""


class NotInEdition(InputError):
    """A learner's edition leaves out what was asked for."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One chapter: its manifest, and the folders computed from its id.

    A learner's edition leaves out the reference of a chapter that is not `given`.
    """

    root: Path
    manifest: ChapterManifest
    given: bool = True

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

    def require_reference(self, purpose: str) -> None:
        """Raise NotInEdition where a learner's edition leaves out the reference that `purpose` needs."""
        if not self.given:
            raise NotInEdition(
                f"This is a learner's edition without the reference of chapter {self.id}, "
                f"which {purpose} needs.",
                "Inside a practice your own code is used; whoever teaches has the whole course.",
            )

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
    edition: EditionManifest | None = None

    @cached_property
    def installed(self) -> bool:
        """Whether a wheel brought this course: then it is bound by its pins."""
        return any(one.root == self.root.resolve() for one in installed_courses())

    def require_whole(self, purpose: str) -> None:
        """Raise NotInEdition where this is a learner's edition, and `purpose` needs the whole course."""
        if self.edition is not None:
            raise NotInEdition(
                f"This is a learner's edition, and {purpose} needs the whole course {self.manifest.id}.",
                "Run it in the course's checkout, or with the wheel of `course build --instructor`.",
            )

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
    edition = _load_edition(root, manifest)
    chapters = tuple(_load_chapter(root, one, manifest, edition) for one in manifest.chapters)
    return Course(root, manifest, chapters, edition)


def _load_edition(root: Path, course: CourseManifest) -> EditionManifest | None:
    """What a learner's edition leaves out; None for a whole course."""
    if not (root / EDITION).is_file():
        return None
    edition = read_manifest(root / EDITION, EditionManifest, EDITION)
    check_edition(edition, course, EDITION)
    return edition


def _load_chapter(
    root: Path, chapter_id: str, course: CourseManifest, edition: EditionManifest | None
) -> Chapter:
    name = f"labs/{chapter_id}/lab.toml"
    manifest = read_manifest(root / name, ChapterManifest, name)
    if manifest.id != chapter_id:
        raise ManifestError(name, "id", f'expected "{chapter_id}", the folder\'s name, got {manifest.id!r}')
    check_chapter(manifest, course, name)
    given = edition is None or int(chapter_id) < int(edition.hides)
    return Chapter(root=root, manifest=manifest, given=given)


def find_course(
    start: Path, explicit: Path | None = None, recorded: Path | None = None, wanted: str = ""
) -> Course:
    """Load the course that a user in `start` means.

    In this order: the one named by --course, the one a practice was made from, the checkout that `start`
    lies in, the checkout that this engine runs from, the installed one, of several the one whose id is
    `wanted`. Raises CourseNotFound, CourseDamaged, ManifestError.
    """
    if explicit is not None:
        return load_course(explicit.resolve())
    for folder in _checkouts(start, recorded):
        if is_course(folder):
            return load_course(folder)
    return load_course(_installed_folder(wanted))


def _installed_folder(wanted: str) -> Path:
    """The folder of the one installed course that can be meant. Raises CourseNotFound, CourseDamaged."""
    installed = list(installed_courses())
    usable = [one for one in installed if one.root is not None]
    chosen = [one for one in installed if one.name == wanted] or usable or installed
    if not chosen:
        raise CourseNotFound(
            "No course was found here, and none is installed.",
            "Start from a course's folder, name it by --course DIR, or install a course's wheel.",
        )
    if len(chosen) > 1:
        names = sorted(one.name for one in chosen)
        raise CourseNotFound(
            f"More than one course is installed: {', '.join(names)}.",
            f"Choose one by its name, as `course --course {names[0]} list`.",
        )
    return chosen[0].folder()


def _checkouts(start: Path, recorded: Path | None) -> Iterator[Path]:
    if recorded is not None:
        yield recorded
    try:
        here = start.resolve()
    except OSError as error:
        raise CourseError(f"{start} can't be resolved: {error.strerror}.") from error
    yield from (here, *here.parents)
    yield Path(__file__).resolve().parent.parent


def pick(text: Text, language: str) -> str:
    """A manifest's text in a language, or in the first one it has."""
    return text.get(language) or next(iter(text.values()))
