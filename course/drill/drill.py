"""One drill: the tests without the fault, with it, and what each test made of it.

Decision: a kill is an assertion of a named test in its call phase, or an exception that the fault declares;
everything else that is red is told as what it is, because a crash proves nothing about a test.
"""

from __future__ import annotations

import enum
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course.catalog import Chapter, Course
from course.drill.faults import Fault, FaultError, Form, apply_patch
from course.errors import CourseError
from course.judge import DEADLINE
from course.labs import count_lab, lab_run, run_tests
from course.manifest import LabEntry
from course.outcome import RunOutcome, Status, TestOutcome
from course.runner import Runner

REFERENCE = "the reference"
LEARNER = "your code"
_WAITING = 20.0
_ASIDE = (".git", ".course", "__pycache__")


class Verdict(enum.Enum):
    """What a drill came to."""

    CAUGHT = "caught"
    ESCAPED = "escaped"
    BROKEN = "broken"
    TIMED_OUT = "timed out"
    UNSOLVED = "unsolved"


class BaselineError(CourseError):
    """The code under drill is not green without any fault."""


@dataclass(frozen=True, kw_only=True)
class DrillResult:
    """What a fault did: per test of the chapter `killed`, `green`, or the red that it was instead."""

    fault: Fault
    form: Form
    subject: str
    verdict: Verdict
    remark: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    lab_tests: frozenset[str] = frozenset()
    seconds: float = 0.0

    @property
    def killers(self) -> list[str]:
        """The tests that caught it."""
        return [name for name, cell in self.cells.items() if cell == "killed"]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The run without a fault: which labs are solved, each one's tests, and how long it took."""

    solved: frozenset[str]
    reds: Mapping[str, str]
    tests: Mapping[str, frozenset[str]]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Whose code is drilled: `name` for messages, `tree` where it lies."""

    name: str
    tree: Path

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that can be planted on it: patches fit the reference's own lines only."""
        return (Form.PATCH, Form.PORTABLE) if self.name == REFERENCE else (Form.PORTABLE,)


class Drill:
    """Drills of one chapter on one subject, whose tree is left alone.

    Patches are applied to a copy in `copies`, always under the same path: kept bytecode holds for it.
    """

    def __init__(
        self, course: Course, chapter: Chapter, subject: Subject, runner: Runner, copies: Path
    ) -> None:
        self.course = course
        self.chapter = chapter
        self.subject = subject
        self._runner = runner
        self._copy = copies / "tree"

    def baseline(self) -> Baseline:
        """Run every counted test without a fault. Raises BaselineError where the run itself is broken."""
        labs = self.chapter.manifest.lab
        run = run_tests(lab_run(self.course, self.chapter, self.subject.tree, labs), self._runner)
        if run.status is Status.BROKEN:
            raise BaselineError(f"The tests can't be run on {self.subject.name}: {run.cause}.")
        outcomes = [count_lab(lab, run) for lab in labs]
        solved = frozenset(outcome.lab for outcome in outcomes if outcome.status is Status.PASSED)
        return Baseline(
            solved=solved,
            reds={outcome.lab: outcome.line for outcome in outcomes if outcome.lab not in solved},
            tests={lab.id: frozenset(test.name for test in run.of_marker(lab.marker)) for lab in labs},
            seconds=run.seconds,
        )

    def run(self, fault: Fault, form: Form, baseline: Baseline, *, narrow: bool = False) -> DrillResult:
        """Plant one fault and run the solved labs' tests; where `narrow`, those of its own lab alone."""
        if fault.entry.lab not in baseline.solved:
            remark = f"Lab {fault.entry.lab} is not solved: {baseline.reds[fault.entry.lab]}"
            return self._result(fault, form, Verdict.UNSOLVED, remark)
        solved = [lab for lab in self.chapter.manifest.lab if lab.id in baseline.solved]
        labs = [fault.lab] if narrow else solved
        try:
            run = self._run(fault, form, labs, baseline.seconds)
        except FaultError as error:
            return self._result(fault, form, Verdict.BROKEN, error.message)
        return self._judge(
            fault, form, frozenset[str]().union(*(baseline.tests[lab.id] for lab in labs)), run
        )

    def _run(self, fault: Fault, form: Form, labs: list[LabEntry], green_seconds: float) -> RunOutcome:
        """Run tests with the fault planted. Raises FaultError where its patch does not apply."""
        tree = self.subject.tree if form is Form.PORTABLE else self._patched(fault)
        deadline = max(1.0, 10 * green_seconds, _WAITING if fault.entry.waits else 0.0)
        run = lab_run(
            self.course,
            self.chapter,
            tree,
            labs,
            fault=fault.portable if form is Form.PORTABLE else None,
            deadline=min(deadline, DEADLINE),
        )
        return run_tests(run, self._runner)

    def _patched(self, fault: Fault) -> Path:
        """The copy, made anew, with the fault's edit. Raises FaultError."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.subject.tree, self._copy, ignore=shutil.ignore_patterns(*_ASIDE))
        apply_patch(fault, self._copy)
        return self._copy

    def _judge(self, fault: Fault, form: Form, asked: frozenset[str], run: RunOutcome) -> DrillResult:
        cells = {test.name: _cell(test, fault) for test in run.tests}
        verdict, remark = _verdict(fault, asked, run, cells)
        lab_tests = frozenset(test.name for test in run.of_marker(fault.lab.marker))
        return self._result(
            fault, form, verdict, remark, cells=cells, lab_tests=lab_tests, seconds=run.seconds
        )

    def _result(self, fault: Fault, form: Form, verdict: Verdict, remark: str, **more: object) -> DrillResult:
        return DrillResult(
            fault=fault,
            form=form,
            subject=self.subject.name,
            verdict=verdict,
            remark=remark,
            **more,  # type: ignore[arg-type]
        )


def _cell(test: TestOutcome, fault: Fault) -> str:
    if test.status is Status.PASSED:
        return "green"
    failure = test.failure
    if failure is None:
        return "not run"
    declared = bool(set(failure.types) & set(fault.entry.raises))
    if failure.phase == "call" and (failure.assertion_only or declared):
        return "killed"
    return failure.types[0] if failure.phase == "call" and failure.types else f"error in {failure.phase}"


def _verdict(
    fault: Fault, asked: frozenset[str], run: RunOutcome, cells: Mapping[str, str]
) -> tuple[Verdict, str]:
    if run.status is Status.BROKEN:
        return Verdict.BROKEN, run.cause
    if run.timed_out:
        return Verdict.TIMED_OUT, run.cause
    if run.cause:
        return Verdict.BROKEN, run.cause
    missing = asked - cells.keys()
    if missing:
        return Verdict.BROKEN, f"{len(missing)} tests were not collected, {min(missing)} among them"
    named = fault.entry.tests
    wrong = {name: cells.get(name, "not there") for name in named if cells.get(name) != "killed"}
    if not wrong:
        return Verdict.CAUGHT, ""
    told = ", ".join(f"{name}: {cell}" for name, cell in wrong.items())
    if any(cell != "green" for cell in wrong.values()):
        return Verdict.BROKEN, f"red, but not by an assertion: {told}"
    return Verdict.ESCAPED, f"stayed green: {', '.join(wrong)}"
