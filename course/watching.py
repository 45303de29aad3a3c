"""A practice watched: what was saved, which lab is current, and the verdict on it from a warm run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course.catalog import Chapter, Course
from course.evidence import Evidence, EvidenceError, lab_facts, teaching_hash
from course.judge import DEADLINE
from course.labs import count_lab, lab_run, run_tests
from course.manifest import LabEntry
from course.outcome import LabOutcome, Status
from course.practice import Practice
from course.runner import Runner
from course.saves import changes


class Watched:
    """One practice under watch. `saved` tells of saves; the verdicts are asked for.

    `unrecorded` says why the last verdict is not in the evidence, where it is not.
    """

    def __init__(self, course: Course, chapter: Chapter, practice: Practice, runner: Runner) -> None:
        self.chapter = chapter
        self.current = 0
        self.unrecorded = ""
        self._course = course
        self._practice = practice
        self._runner = runner
        self._green_seconds = 0.0
        self._saves: queue.SimpleQueue[str] = queue.SimpleQueue()

    @property
    def lab(self) -> LabEntry:
        """The lab that is being worked on."""
        return self.chapter.manifest.lab[self.current]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take note of saves in the background."""
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(timeout=2)

    def _watch(self, stop: threading.Event) -> None:
        folders = sorted({file.parent for file in self._files() if file.parent.is_dir()})
        for state in changes(folders, self.state, self.state(), stop):
            self._saves.put(state)

    def _files(self) -> list[Path]:
        names = [*self.chapter.manifest.teaching_files, self.chapter.manifest.focus_test]
        return [self._practice.root / name for name in names]

    def state(self) -> str:
        """A hash of what the verdict depends on: the teaching files and the lab's tests."""
        names = [*self.chapter.manifest.teaching_files, self.chapter.manifest.focus_test]
        return teaching_hash(self._practice.root, names)

    def saved(self) -> bool:
        """Whether something was saved since the last question; a burst of saves is one."""
        found = False
        while not self._saves.empty():
            self._saves.get()
            found = True
        return found

    def check(self) -> LabOutcome:
        """The verdict on the current lab."""
        return self._run([self.lab])[0]

    def check_all(self) -> list[LabOutcome]:
        """The verdict on every lab of the chapter."""
        return self._run(list(self.chapter.manifest.lab))

    def advance(self) -> list[LabOutcome]:
        """After a green lab: every verdict, and the first lab that is not green becomes the current one."""
        outcomes = self.check_all()
        for index, outcome in enumerate(outcomes):
            if outcome.status is not Status.PASSED:
                self.current = index
                break
        return outcomes

    def next(self) -> None:
        """Move on to the next lab, round to the first."""
        self.current = (self.current + 1) % len(self.chapter.manifest.lab)

    def _run(self, labs: list[LabEntry]) -> list[LabOutcome]:
        teaching = teaching_hash(self._practice.root, self.chapter.manifest.teaching_files)
        deadline = min(DEADLINE, max(5.0, 10 * self._green_seconds)) if self._green_seconds else DEADLINE / 4
        run = run_tests(
            lab_run(self._course, self.chapter, self._practice.root, labs, deadline=deadline), self._runner
        )
        if run.status is Status.PASSED:
            self._green_seconds = max(self._green_seconds, run.seconds)
        outcomes = [count_lab(lab, run) for lab in labs]
        evidence = Evidence(self._practice)
        for lab, outcome in zip(labs, outcomes, strict=True):
            try:
                evidence.add("check", teaching, **lab_facts(outcome, lab.first_red))
            except EvidenceError as error:
                self.unrecorded = error.message
        return outcomes
