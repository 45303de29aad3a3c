"""Faults as files: a patch of the reference, and where the surface shows it a portable `inject(module)`."""

from __future__ import annotations

import difflib
import enum
from dataclasses import dataclass
from pathlib import Path

from course.catalog import Chapter, Course
from course.errors import CourseError, InputError
from course.git import Git
from course.manifest import FaultEntry, LabEntry


class FaultError(CourseError):
    """A fault of the course can't be planted."""


class Form(enum.Enum):
    """How a fault is planted: as an edit of the reference, or from outside on any implementation."""

    PATCH = "patch"
    PORTABLE = "portable"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A declared fault and its files; a form that is not there is None."""

    chapter: Chapter
    entry: FaultEntry
    patch: Path | None
    portable: Path | None

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def lab(self) -> LabEntry:
        return self.chapter.lab(self.entry.lab)

    @property
    def forms(self) -> tuple[Form, ...]:
        there = {Form.PATCH: self.patch, Form.PORTABLE: self.portable}
        return tuple(form for form, path in there.items() if path is not None)


def chapter_faults(chapter: Chapter) -> list[Fault]:
    """The faults that a chapter declares. Raises FaultError where one has no file at all.

    A learner's edition leaves out the edits of the reference.
    """
    return [_fault(chapter, entry) for entry in chapter.manifest.fault]


def _fault(chapter: Chapter, entry: FaultEntry) -> Fault:
    folder = chapter.labs_dir / "faults"
    patch, portable = folder / f"{entry.name}.patch", folder / f"{entry.name}.py"
    fault = Fault(
        chapter=chapter,
        entry=entry,
        patch=patch if patch.is_file() else None,
        portable=portable if portable.is_file() else None,
    )
    if not fault.forms and chapter.given:
        raise FaultError(
            f"labs/{chapter.id}/faults has neither {entry.name}.patch nor {entry.name}.py.",
            f"Write one, or take the fault out of labs/{chapter.id}/lab.toml.",
        )
    return fault


def find_fault(course: Course, name: str) -> Fault:
    """The fault of a name. Raises InputError naming those of its lab, or of the course."""
    faults = [fault for chapter in course.practice_chapters for fault in chapter_faults(chapter)]
    for fault in faults:
        if fault.name == name:
            return fault
    names = [fault.name for fault in faults]
    near = difflib.get_close_matches(name, names, n=3) or [
        one for one in names if one.startswith(f"{name.partition('-')[0]}-")
    ]
    hint = f"Perhaps: {', '.join(near)}." if near else "`course drill --table` shows them all."
    raise InputError(f"This course has no fault {name}.", hint)


def apply_patch(fault: Fault, tree: Path) -> None:
    """Apply a fault's patch to a copy of the reference. Raises FaultError."""
    assert fault.patch is not None
    git = Git(tree)
    arguments = ("apply", "-p1", "--whitespace=nowarn", str(fault.patch.resolve()))
    env = {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    try:
        git.run(*arguments, env=env)
    except CourseError as error:
        raise FaultError(
            f"{fault.patch.name} does not apply to the reference: {error.message}.",
            "Make it anew from the reference's present lines.",
        ) from error
