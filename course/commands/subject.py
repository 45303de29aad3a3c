"""Whose code a chapter's quiz and demo run on: a practice's that has come that far, else the reference."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from course.catalog import Chapter
from course.drill.drill import LEARNER, Subject
from course.drill.series import reference_subject
from course.history import open_history
from course.request import Request


@contextlib.contextmanager
def subject_of(request: Request, chapter: Chapter) -> Iterator[Subject]:
    """The tree to run a chapter on: the practice that the user is in, or the exported reference."""
    practice, course = request.practice, request.course
    if practice is not None and chapter in course.until(course.chapter(practice.chapter)):
        yield Subject(name=LEARNER, tree=practice.root)
        return
    chapter.require_reference("this outside of a practice")
    with contextlib.ExitStack() as stack:
        with request.output.working("fetching the reference"):
            history = open_history(course)
            subject = stack.enter_context(reference_subject(history, chapter))
        yield subject
