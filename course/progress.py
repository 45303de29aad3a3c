"""How far a tree's chapter is, by a fresh run: each lab's outcome, and which lab is the current one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from course.catalog import Chapter, Course
from course.errors import CourseError
from course.labs import count_lab, lab_run, run_tests
from course.manifest import LabEntry
from course.outcome import LabOutcome, Status

_DEADLINE = 30.0


class NotJudged(CourseError):
    """A run that can't be trusted: which lab is the current one is not known."""


def lab_outcomes(
    course: Course, chapter: Chapter, tree: Path, labs: Iterable[LabEntry]
) -> Iterator[LabOutcome]:
    """Each lab's outcome, from one run; lab by lab where that was ended. Raises NotJudged."""
    asked = list(labs)
    run = run_tests(lab_run(course, chapter, tree, asked, deadline=_DEADLINE))
    apart = bool(run.cause) and run.status is not Status.BROKEN and len(asked) > 1
    for lab in asked:
        own = run_tests(lab_run(course, chapter, tree, [lab], deadline=_DEADLINE)) if apart else run
        outcome = count_lab(lab, own)
        if outcome.status is Status.BROKEN:
            raise NotJudged(f"BROKEN: Lab {lab.id} can't be judged: {outcome.cause}.", "Run `course doctor`.")
        yield outcome


def current_lab(course: Course, chapter: Chapter, tree: Path) -> LabEntry | None:
    """The first lab of the chapter that is not green, None where all are. Raises NotJudged."""
    for outcome in lab_outcomes(course, chapter, tree, chapter.manifest.lab):
        if outcome.status is not Status.PASSED:
            return chapter.lab(outcome.lab)
    return None
