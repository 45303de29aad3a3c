"""The acceptance record: each line of lab.toml printed where a fresh run or kept evidence has shown it.

Decision: nothing is taken from an earlier run where a fresh one can show it; only a fault made by hand, which
can't be run again, is taken from the evidence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course.build import BuildFailed, build
from course.catalog import Chapter, Course
from course.evidence import Evidence
from course.history import History, export_commit
from course.judge import TestRun
from course.labs import count_lab, lab_run, run_tests, teaching_modules
from course.manifest import AcceptanceLine
from course.outcome import LabOutcome, Status
from course.practice import Practice, start_commit

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
        for entry in self.chapter.manifest.acceptance:
            yield shows[entry.check](entry)

    def _line(self, entry: AcceptanceLine, shown: bool, by: str, *command: str) -> RecordLine:
        return RecordLine(line=entry.line, check=entry.check, shown=shown, by=by, command=command)

    def _build(self, entry: AcceptanceLine) -> RecordLine:
        try:
            count = build(self._practice.root, self._course.manifest.package)
        except BuildFailed as failure:
            return self._line(entry, False, failure.message, "course", "check")
        return self._line(entry, True, f"{count} modules compiled and imported")

    def _first_red(self, entry: AcceptanceLine) -> RecordLine:
        """The starter that this practice began with, run again in a directory of its own."""
        lab = self.chapter.lab(entry.lab or "")
        with tempfile.TemporaryDirectory(prefix="course-record-") as folder:
            tree = Path(folder).resolve() / "starter"
            commit = start_commit(self._history, self.chapter, self._practice.language)
            export_commit(self._history, commit, tree)
            run = run_tests(lab_run(self._course, self.chapter, tree, [lab], deadline=_DEADLINE))
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
        run = run_tests(lab_run(self._course, self.chapter, self._practice.root, labs, deadline=_DEADLINE))
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
                tree=self._practice.root,
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
        injected = [e for e in kinds if e["kind"] == "fault_injected"]
        restored = [
            e for e in kinds if e["kind"] == "fault_restored" and injected and e["time"] > injected[0]["time"]
        ]
        found = injected if entry.check == "fault_injected" else restored
        command = ("course", "drill", "--try", entry.fault or "")
        if not found:
            return self._line(entry, False, "no evidence", *command)
        last = found[-1]
        return self._line(
            entry,
            True,
            f"seen {last['time']}: Lab {last.get('lab')} {last.get('passed')}/{last.get('tests')}",
        )
