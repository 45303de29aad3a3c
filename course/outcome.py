"""What a run came to, as values: the learner's red is an outcome, never an exception."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

_LONGEST = 300


class Status(enum.Enum):
    """How a test, a lab or a run ended; FAILED is the learner's red, BROKEN is ours."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of a file, the path relative to the tree where it lies inside."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a test is red: the exception's type names (most derived first), its text and where it happened.

    `phase` is pytest's `setup`, `call` or `teardown`, or `collect`; `places` are the frames inside the tree,
    outermost first. `expected` and `actual` are set where the assertion compared two values; `printed` is the
    end of what the test wrote to standard output.
    """

    phase: str
    types: tuple[str, ...]
    message: str
    places: tuple[Place, ...] = ()
    expected: str | None = None
    actual: str | None = None
    assertion_only: bool = False
    printed: str = ""

    @property
    def briefly(self) -> str:
        """A scaffold's own message, of everything else the headline."""
        scaffold = self.types[:1] == ("NotImplementedError",) and self.message.strip()
        return _first_line(self.message) if scaffold else self.headline

    @property
    def headline(self) -> str:
        """The exception as one line: type and the first line of its text."""
        first = _first_line(self.message)
        kind = self.types[0] if self.types else "Error"
        if kind == "SystemExit":
            return f"sys.exit({first}) was called"
        if kind == "OSError" and "reading from stdin" in first:
            return "it reads from standard input, where nobody types during a test"
        return f"{kind}: {first}" if first else kind


def _first_line(text: str) -> str:
    """The first line of a text, in bounds; empty where there is none."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


@dataclass(frozen=True, kw_only=True)
class TestOutcome:
    """One test function (all its parameters together): `name` is the function's, `rule` its docstring."""

    name: str
    file: str
    status: Status
    markers: frozenset[str] = frozenset()
    rule: str = ""
    failure: Failure | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """One run of pytest in a tree.

    `status` is BROKEN where the run itself can't be trusted (wrong package, a crash of the runner), FAILED
    where learner code ended it or a test is red; `cause` then says so in one sentence.
    """

    status: Status
    cause: str = ""
    tests: tuple[TestOutcome, ...] = ()
    collect_failures: tuple[Failure, ...] = ()
    place: Place | None = None
    timed_out: bool = False
    seconds: float = 0.0

    def of_marker(self, marker: str) -> tuple[TestOutcome, ...]:
        """The tests that carry `marker`, in the order they ran."""
        return tuple(test for test in self.tests if marker in test.markers)


@dataclass(frozen=True, kw_only=True)
class LabOutcome:
    """A lab's count against its manifest: `passed` of `expected` tests, and the first red if there is one."""

    lab: str
    passed: int
    expected: int
    status: Status
    first_red: TestOutcome | None = None
    cause: str = ""
    run: RunOutcome | None = field(default=None, repr=False)

    @property
    def line(self) -> str:
        """The lab's closing line, as every tool prints it."""
        head = f"Lab {self.lab} {self.passed}/{self.expected}"
        if self.status is Status.PASSED:
            return head
        if self.status is Status.BROKEN:
            return f"Lab {self.lab} BROKEN · {self.cause}"
        red = self.cause
        if self.first_red is not None and self.first_red.failure is not None:
            red = self.first_red.failure.briefly
        return f"{head} · first red: {red}" if red else head
