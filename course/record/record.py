"""The acceptance record: each line of lab.toml printed where a fresh run or kept evidence has shown it.

Decision: nothing is taken from an earlier run where a fresh one can show it; only a fault made by hand, which
can't be run again, is taken from the evidence. The learner's `src` is judged in a copy of the starter's tree:
changed tests or settings show nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course.begin import export_start
from course.build import BuildFailed, build
from course.catalog import Chapter, Course
from course.evidence import Evidence
from course.history import History
from course.judge import TestRun
from course.labs import count_lab, lab_run, run_tests, teaching_modules
from course.leftovers import temporary_folder
from course.manifest import AcceptanceLine
from course.outcome import LabOutcome, Status
from course.practice import Practice

_DEADLINE = 300.0


@dataclass(frozen=True, kw_only=True)
class RecordLine:
    """One line of the record: `shown` by what, or missing, with the command that would show it."""

    line: str
    check: str
    shown: bool
    by: str
    command: tuple[str, ...] = ()


class Record:
    """The record of one practice, made afresh."""

    def __init__(self, course: Course, history: History, practice: Practice) -> None:
        self._course = course
        self._history = history
        self._practice = practice
        self._starter = self._tree = Path()
        self.chapter: Chapter = course.practice_chapter(practice.chapter)

    def lines(self) -> Iterator[RecordLine]:
        """Each line of the chapter's acceptance, in its order."""
        shows = {
            "build": self._build,
            "first_red": self._first_red,
            "lab": self._lab,
            "fault_injected": self._fault,
            "fault_restored": self._fault,
            "chapter": self._chapter_total,
            "through": self._through,
        }
        with temporary_folder("record") as folder:
            self._starter, self._tree = folder / "starter", folder / "tree"
            for tree in (self._starter, self._tree):
                export_start(self._course, self._history, self._practice, tree)
            _lay_over(self._practice.root / "src", self._tree / "src")
            for entry in self.chapter.manifest.acceptance:
                yield shows[entry.check](entry)

    def _line(self, entry: AcceptanceLine, shown: bool, by: str, *command: str) -> RecordLine:
        return RecordLine(line=entry.line, check=entry.check, shown=shown, by=by, command=command)

    def _build(self, entry: AcceptanceLine) -> RecordLine:
        try:
            count = build(self._tree, self._course.manifest.package)
        except BuildFailed as failure:
            return self._line(entry, False, failure.message, "course", "check")
        return self._line(entry, True, f"{count} modules compiled and imported")

    def _first_red(self, entry: AcceptanceLine) -> RecordLine:
        """The starter that this practice began with, run again in a directory of its own."""
        lab = self.chapter.lab(entry.lab or "")
        run = run_tests(lab_run(self._course, self.chapter, self._starter, [lab], deadline=_DEADLINE))
        outcome = count_lab(lab, run)
        reds = [test.failure for test in run.of_marker(lab.marker)]
        exact = len(reds) == lab.tests and all(
            red is not None and red.types[0] == "NotImplementedError" and red.message == lab.first_red
            for red in reds
        )
        return self._line(entry, exact, outcome.line, "course", "doctor")

    @cached_property
    def _outcomes(self) -> dict[str, LabOutcome]:
        labs = self.chapter.manifest.lab
        run = run_tests(lab_run(self._course, self.chapter, self._tree, labs, deadline=_DEADLINE))
        return {lab.id: count_lab(lab, run) for lab in labs}

    def _lab(self, entry: AcceptanceLine) -> RecordLine:
        outcome = self._outcomes[entry.lab or ""]
        return self._line(
            entry, outcome.status is Status.PASSED, outcome.line, "course", "check", outcome.lab
        )

    def _chapter_total(self, entry: AcceptanceLine) -> RecordLine:
        passed = sum(outcome.passed for outcome in self._outcomes.values())
        shown = all(outcome.status is Status.PASSED for outcome in self._outcomes.values())
        return self._line(entry, shown, f"{passed}/{self.chapter.test_count}", "course", "check")

    def _through(self, entry: AcceptanceLine) -> RecordLine:
        run = run_tests(
            TestRun(
                tree=self._tree,
                package=self._course.manifest.package,
                modules=teaching_modules(self.chapter),
                files=["tests"],
                deadline=_DEADLINE,
            )
        )
        red = next((test.name for test in run.tests if test.status is not Status.PASSED), "")
        by = run.cause or (f"{red} is red" if red else f"{len(run.tests)} tests green")
        return self._line(entry, run.status is Status.PASSED, by, "pytest")

    def _fault(self, entry: AcceptanceLine) -> RecordLine:
        """A fault made by hand, from the evidence; restored only counts after injected."""
        kinds = [e for e in Evidence(self._practice).entries() if e.get("fault") == entry.fault]
        injected = [e for e in kinds if e.get("kind") == "fault_injected"]
        first = str(injected[0].get("time")) if injected else ""
        restored = [
            e for e in kinds if e.get("kind") == "fault_restored" and injected and str(e.get("time")) > first
        ]
        found = injected if entry.check == "fault_injected" else restored
        command = ("course", "drill", "--try", entry.fault or "")
        if not found:
            return self._line(entry, False, "no evidence", *command)
        last = found[-1]
        return self._line(
            entry,
            True,
            f"seen {last.get('time')}: Lab {last.get('lab')} {last.get('passed')}/{last.get('tests')}",
        )


def _lay_over(source: Path, target: Path) -> None:
    """Put the learner's sources in the place of the starter's, bytecode aside."""
    shutil.rmtree(target)
    target.mkdir()
    for file in source.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
