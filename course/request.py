"""What holds for one call of the command: its start, course, language and output."""

from __future__ import annotations

import locale
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course.catalog import Chapter, Course, find_course
from course.console import Output
from course.errors import InputError
from course.practice import Practice, find_practice, require_practice


@dataclass(frozen=True)
class Request:
    """The options of the command line that hold for every command."""

    start: Path
    explicit_course: Path | None
    chosen_language: str | None
    output: Output

    @cached_property
    def course(self) -> Course:
        """The course that is meant here. Raises CourseError."""
        practice = self.practice
        recorded = practice.source if practice is not None else None
        wanted = practice.course if practice is not None else ""
        course = find_course(self.start, self.explicit_course, recorded, wanted)
        if practice is not None and practice.course != course.manifest.id:
            raise InputError(
                f"{practice.root} is a practice of the course {practice.course!r}, "
                f"not of {course.manifest.id!r}.",
                "Name its course by --course DIR, or install it.",
            )
        return course

    @cached_property
    def practice(self) -> Practice | None:
        """The practice that the command was started in, if any. Raises PracticeError."""
        return find_practice(self.start)

    def require_practice(self) -> Practice:
        """The practice that the command was started in. Raises InputError."""
        return require_practice(self.start)

    def chapter(self, number: str | None) -> Chapter:
        """The practice chapter of a number, or the practice's own. Raises InputError."""
        if number is not None:
            return self.course.practice_chapter(number)
        return self.course.practice_chapter(self.require_practice().chapter)

    @property
    def language(self) -> str:
        """The contents' language: by --lang, COURSE_LANG, the practice, the locale, else the first."""
        languages = self.course.manifest.languages
        if self.chosen_language is not None:
            if self.chosen_language not in languages:
                raise InputError(
                    f"This course has no language {self.chosen_language!r}.",
                    f"It has: {', '.join(languages)}.",
                )
            return self.chosen_language
        practice = self.practice
        wishes = [os.environ.get("COURSE_LANG"), practice.language if practice else None, _locale_language()]
        return next((wish for wish in wishes if wish in languages and wish is not None), languages[0])

    def next_command(self, *arguments: str) -> str:
        """A `course` command that runs as it stands from where the user is, with the options of this call."""
        options = []
        if self.start != Path.cwd():
            options += ["-C", str(self.start)]
        if self.explicit_course is not None:
            options += ["--course", str(self.explicit_course)]
        if self.chosen_language is not None:
            options += ["--lang", self.chosen_language]
        return command_line("course", *options, *arguments)


def free_place(practice: Path | None = None) -> str:
    """A place for a new practice that is still free, as typed here: `./mywork`, or beside a practice."""
    parent, shown = (practice.parent, str(practice.parent)) if practice is not None else (Path.cwd(), ".")
    names = ["mywork", *(f"mywork{number}" for number in range(2, 100))]
    return f"{shown}/{next((name for name in names if not os.path.lexists(parent / name)), names[0])}"


def _locale_language() -> str | None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return value.partition("_")[0].partition(".")[0].lower()
    try:
        value = locale.getlocale()[0]
    except ValueError:
        return None
    return value.partition("_")[0].lower() if value else None


def quoted(path: Path | str) -> str:
    """A path as a shell takes it, in one line of signs that can be printed."""
    text = str(path)
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_escaped(char) for char in text) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


def from_here(path: Path) -> str:
    """A path as the user types it from the current directory: relative where that is below, else absolute."""
    try:
        relative = path.relative_to(Path.cwd())
    except (ValueError, OSError):
        return quoted(path)
    text = relative.as_posix()
    return quoted(f"./{text}" if text.startswith("-") else text)


def command_line(name: str, *arguments: str) -> str:
    """A command that runs as it stands: by its bare name where PATH leads to this environment's own.

    Otherwise by the interpreter's full path (`/…/python -m pytest …`).
    """
    program = name
    if not _leads_here(name):
        program = f"{quoted(sys.executable)} -m {name}"
    return " ".join([program, *(quoted(argument) for argument in arguments)])


def _leads_here(name: str) -> bool:
    found = shutil.which(name)
    return found is not None and Path(found).absolute().parent == Path(sys.executable).absolute().parent
