"""One finding of the doctor's: how bad it is, what was seen, how to mend it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from course.errors import CourseError


class Level(enum.Enum):
    """OK is in order, WARN may get in the way, BAD does."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was looked at, what was seen there, and, where it is not in order, how to mend it."""

    level: Level
    name: str
    seen: str
    mend: str = ""


def ok(name: str, seen: str) -> Finding:
    """A finding that is in order."""
    return Finding(level=Level.OK, name=name, seen=seen)


def warn(name: str, seen: str, mend: str) -> Finding:
    """A finding that may get in the way."""
    return Finding(level=Level.WARN, name=name, seen=seen, mend=mend)


def bad(name: str, seen: str, mend: str) -> Finding:
    """A finding that gets in the way."""
    return Finding(level=Level.BAD, name=name, seen=seen, mend=mend)


Check = Callable[[], Iterable[Finding]]


def examine(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Every check's findings; a check that fails is a finding too, and stops no other."""
    for name, check in checks:
        try:
            yield from check()
        except CourseError as error:
            yield bad(name, error.message, error.hint or "Run `course -v doctor` for the details.")
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, the doctor goes on
            yield warn(
                name, f"could not be looked at: {type(error).__name__}: {error}", "Look at it by hand."
            )
