"""A fault made by hand in a practice: the edit, the red it must give, the edit undone, the green again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course.catalog import Chapter, Course
from course.drill.faults import Fault
from course.errors import InputError
from course.evidence import Evidence, teaching_hash
from course.labs import count_lab, lab_run, run_tests
from course.outcome import Failure, LabOutcome, Status
from course.practice import Practice
from course.runner import Runner
from course.saves import changes


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something to tell: `kind` is `before`, `still_green`, `other_red`, `red`, `not_back` or `restored`."""

    kind: str
    outcome: LabOutcome


class ByHand:
    """One fault, one practice; `steps` ends with `restored`."""

    def __init__(self, course: Course, practice: Practice, fault: Fault, runner: Runner) -> None:
        self._course = course
        self._practice = practice
        self._fault = fault
        self._runner = runner
        self.stop = threading.Event()

    def steps(self, ready: Callable[[Step], None]) -> Iterator[Step]:
        """Watch the learner make the fault and undo it; `ready` is told before the first wait.

        Raises InputError where the lab is not green to begin with.
        """
        original = self._state()
        before = self._check()
        if before.status is not Status.PASSED:
            raise InputError(
                f"{before.line}: a fault is planted in green code.",
                f"Solve Lab {self._fault.entry.lab} first.",
            )
        injected = False
        ready(Step(kind="before", outcome=before))
        for state in changes(self._folders(), self._state, original, self.stop):
            outcome = self._check()
            if state == original:
                if injected and outcome.status is Status.PASSED:
                    self._keep("fault_restored", outcome, state)
                    yield Step(kind="restored", outcome=outcome)
                    return
                continue
            if injected:
                yield Step(kind="not_back", outcome=outcome)
            elif self._is_caught(outcome):
                injected = True
                self._keep("fault_injected", outcome, state)
                yield Step(kind="red", outcome=outcome)
            else:
                kind = "still_green" if outcome.status is Status.PASSED else "other_red"
                yield Step(kind=kind, outcome=outcome)

    def _folders(self) -> list[Path]:
        return sorted({(self._practice.root / name).parent for name in self._chapter.manifest.teaching_files})

    @property
    def _chapter(self) -> Chapter:
        return self._fault.chapter

    def _state(self) -> str:
        return teaching_hash(self._practice.root, self._chapter.manifest.teaching_files)

    def _check(self) -> LabOutcome:
        lab = self._fault.lab
        run = run_tests(lab_run(self._course, self._chapter, self._practice.root, [lab]), self._runner)
        return count_lab(lab, run)

    def _is_caught(self, outcome: LabOutcome) -> bool:
        """Whether a test that the fault names is red by an assertion."""
        run = outcome.run
        for test in run.tests if run is not None else ():
            failure = test.failure
            named = test.name in self._fault.entry.tests
            if named and failure is not None and failure.phase == "call" and self._is_kill(failure):
                return True
        return False

    def _is_kill(self, failure: Failure) -> bool:
        return failure.assertion_only or bool(set(failure.types) & set(self._fault.entry.raises))

    def _keep(self, kind: str, outcome: LabOutcome, state: str) -> None:
        red = outcome.first_red.name if outcome.first_red is not None else None
        Evidence(self._practice).add(
            kind,
            state,
            fault=self._fault.name,
            lab=outcome.lab,
            passed=outcome.passed,
            tests=outcome.expected,
            test=red,
        )
