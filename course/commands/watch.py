"""`course watch`: the verdict on the current lab after every save."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import click

from course.commands.check import closing_commands, tell_deviation
from course.commands.options import pass_request
from course.deviation import first_deviation
from course.drill.drill import LEARNER, Subject
from course.drill.faults import chapter_faults
from course.drill.report import STYLES, result_line
from course.drill.series import Series
from course.errors import CourseError
from course.hints import ShownHints, lab_hints
from course.keys import single_keys
from course.outcome import LabOutcome, Status
from course.request import Request
from course.runner import ColdRunner, Runner, open_runner
from course.saves import notices_work
from course.watching import Watched

LEGEND = "h hint · a all · d drill · n next · q quit"
_LOOK = 0.05


@click.command("watch")
@pass_request
def command(request: Request) -> int:
    """Check the current lab on every save; h hint, a all, d drill, n next, q quit."""
    practice = request.require_practice()
    chapter = request.course.practice_chapter(practice.chapter)
    with contextlib.ExitStack() as stack:
        warm = open_runner()
        if warm is None:
            request.output.line(
                "This system can't fork: runs start cold, the verdicts are the same.", "yellow"
            )
        if not notices_work(practice.root):
            request.output.line(
                "This file system tells nothing of changes: files are looked at instead.", "yellow"
            )
        runner: Runner = stack.enter_context(warm) if warm is not None else ColdRunner()
        watched = Watched(request.course, chapter, practice, runner)
        key = stack.enter_context(single_keys())
        stack.enter_context(watched.watching())
        return _Screen(request, watched).run(key)


class _Screen:
    """What the learner sees and types."""

    def __init__(self, request: Request, watched: Watched) -> None:
        self._request = request
        self._output = request.output
        self._watched = watched

    def run(self, key: object) -> int:
        assert callable(key)
        self._settle(self._watched.advance())
        actions = {"h": self._hint, "a": self._all, "d": self._drill, "n": self._next}
        while True:
            pressed = key(_LOOK)
            if pressed in ("q", "\x03", "\x04"):
                return 0
            if pressed in actions:
                actions[pressed]()
            elif self._watched.saved():
                self._check()

    def _settle(self, outcomes: list[LabOutcome]) -> None:
        """Tell where the practice stands."""
        self._progress(outcomes)
        current = next((outcome for outcome in outcomes if outcome.status is not Status.PASSED), None)
        if current is None:
            chapter = self._watched.chapter
            self._output.line(f"Chapter {chapter.id} {chapter.test_count}/{chapter.test_count}", "bold green")
            self._output.line("Next:")
            self._output.lines(f"  {line}" for line in closing_commands(self._request, chapter))
        else:
            self._verdict(current)
        self._output.line(LEGEND, "dim")

    def _tell_unrecorded(self) -> None:
        if self._watched.unrecorded:
            self._output.note(self._watched.unrecorded, "yellow")
            self._watched.unrecorded = ""

    def _progress(self, outcomes: list[LabOutcome]) -> None:
        self._tell_unrecorded()
        marks = [f"{o.lab} {o.passed}/{o.expected}" for o in outcomes]
        self._output.line(" | ".join(marks), "dim")

    def _check(self) -> None:
        self._output.line(f"checking {self._watched.lab.id} …", "dim")
        outcome = self._watched.check()
        if outcome.status is Status.PASSED:
            self._output.line(outcome.line, "green")
            self._settle(self._watched.advance())
        else:
            self._verdict(outcome)
            self._tell_unrecorded()
            self._output.line(LEGEND, "dim")

    def _verdict(self, outcome: LabOutcome) -> None:
        style = "magenta" if outcome.status is Status.BROKEN else "red"
        self._output.paragraph(outcome.line, style, indent=2)
        deviation = first_deviation(outcome, self._watched.chapter, self._request.language)
        tell_deviation(self._output, deviation)

    def _all(self) -> None:
        self._output.line(f"checking chapter {self._watched.chapter.id} …", "dim")
        for outcome in self._watched.check_all():
            self._output.line(outcome.line, "green" if outcome.status is Status.PASSED else "red")
        self._tell_unrecorded()
        self._output.line(LEGEND, "dim")

    def _next(self) -> None:
        self._watched.next()
        self._check()

    def _hint(self) -> None:
        try:
            hints = lab_hints(self._watched.chapter, self._watched.lab.id, self._request.language)
            shown = ShownHints(self._request.require_practice())
            hint = hints[min(shown.count(self._watched.lab.id), len(hints) - 1)]
            shown.remember(self._watched.lab.id, hint.number)
            self._output.line(f"Hint {hint.number}/{hint.total} for Lab {self._watched.lab.id}: {hint.text}")
        except CourseError as error:
            self._output.line(error.message, "yellow")

    def _drill(self) -> None:
        chapter = self._watched.chapter
        practice = self._request.require_practice()
        subject = Subject(name=LEARNER, tree=practice.root)
        self._output.line("drilling the solved labs …", "dim")
        try:
            with Series(self._request.course, chapter, subject, 1) as series, ThreadPoolExecutor(1) as pool:
                baseline = series.baseline()
                faults = [f for f in chapter_faults(chapter) if f.entry.lab in baseline.solved]
                planned = [(f, form) for f in faults for form in f.forms if form in subject.forms]
                if not planned:
                    self._output.line("No lab is solved yet: there is nothing to break.", "yellow")
                for result in series.run(planned, baseline, pool):
                    self._output.line(result_line(result), STYLES[result.verdict])
        except CourseError as error:
            self._output.line(error.message, "yellow")
        self._output.line(LEGEND, "dim")
