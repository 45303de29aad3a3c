"""Many drills on one subject: workers with a warm runner each, green before and after."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import TypeVar

from course.catalog import Chapter, Course
from course.drill.drill import REFERENCE, Baseline, BaselineError, Drill, DrillResult, Subject
from course.drill.faults import Fault, Form
from course.history import History, export_commit
from course.leftovers import temporary_folder
from course.runner import ColdRunner, Runner, open_runner

T = TypeVar("T")
_WORTH = 6
"""Drills that take as long as a worker's start."""


@contextlib.contextmanager
def reference_subject(history: History, chapter: Chapter) -> Iterator[Subject]:
    """The reference's target of a chapter, in a temporary directory."""
    with temporary_folder("reference") as folder:
        tree = folder / "tree"
        export_commit(history, history.checkpoints[chapter.id], tree)
        yield Subject(name=REFERENCE, tree=tree)


class Series:
    """The drills of one chapter on one subject; a context manager, as it keeps warm runners."""

    def __init__(
        self, course: Course, chapter: Chapter, subject: Subject, workers: int, *, narrow: bool = False
    ) -> None:
        self.course = course
        self.chapter = chapter
        self.subject = subject
        self._stack = contextlib.ExitStack()
        self._free: queue.SimpleQueue[Drill] = queue.SimpleQueue()
        self._workers = workers
        self._narrow = narrow

    def __enter__(self) -> Series:
        for _ in range(self._workers):
            warm = open_runner()
            runner: Runner = self._stack.enter_context(warm) if warm is not None else ColdRunner()
            copies = self._stack.enter_context(temporary_folder("drill"))
            self._free.put(Drill(self.course, self.chapter, self.subject, runner, copies))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def baseline(self) -> Baseline:
        """The run without a fault. Raises BaselineError."""
        return self._with_drill(lambda drill: drill.baseline())

    def run(
        self, faults: Sequence[tuple[Fault, Form]], baseline: Baseline, pool: Executor
    ) -> Iterator[DrillResult]:
        """Drill each fault; results come in the given order. Raises BaselineError where it ends not green."""
        waiting = [pool.submit(self._run, fault, form, baseline) for fault, form in faults]
        try:
            for future in waiting:
                yield future.result()
        finally:
            _cancel(waiting)
        after = self.baseline()
        if after.solved != baseline.solved:
            lost = ", ".join(sorted(baseline.solved ^ after.solved))
            raise BaselineError(
                f"Without a fault, Lab {lost} is not after the drills what it was before.",
                "Its tests depend on something else: run `course check` twice.",
            )

    def _run(self, fault: Fault, form: Form, baseline: Baseline) -> DrillResult:
        return self._with_drill(lambda drill: drill.run(fault, form, baseline, narrow=self._narrow))

    def _with_drill(self, work: Callable[[Drill], T]) -> T:
        drill = self._free.get()
        try:
            return work(drill)
        finally:
            self._free.put(drill)


def _cancel(waiting: Sequence[Future[DrillResult]]) -> None:
    for future in waiting:
        future.cancel()


def workers_for(drills: int, jobs: int | None = None, *, more: int = 0) -> int:
    """How many workers so many drills are worth: at most the processors and so many `more`; or `jobs`."""
    return jobs or min(_processors() + more, max(1, drills // _WORTH))


def _processors() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
