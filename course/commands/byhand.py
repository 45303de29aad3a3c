"""`course drill --try FAULT`: leads through a fault made by hand."""

from __future__ import annotations

import contextlib

from course.catalog import pick
from course.drill.byhand import ByHand, Step
from course.drill.faults import Fault
from course.drill.report import explanation
from course.errors import InputError
from course.request import Request
from course.runner import ColdRunner, Runner, open_runner

_TOLD = {
    "still_green": "Still green: the mistake is not made yet, or not where it shows. Go on, save again.",
    "other_red": "Red, but not by a test that this mistake is for. Go on, save again.",
    "not_back": "The file is not what it was yet. Undo the edit, save again.",
}


def try_by_hand(request: Request, fault: Fault) -> int:
    """Show the edit, wait for it, show the red, wait for the undoing, show the green. Raises InputError."""
    practice = request.require_practice()
    if practice.chapter != fault.chapter.id:
        raise InputError(
            f"{fault.name} belongs to chapter {fault.chapter.id}, this practice is of {practice.chapter}."
        )
    with contextlib.ExitStack() as stack:
        warm = open_runner()
        runner: Runner = stack.enter_context(warm) if warm is not None else ColdRunner()
        by_hand = ByHand(request.course, practice, fault, runner)
        stack.callback(by_hand.stop.set)
        for step in by_hand.steps(lambda step: _begin(request, fault, step)):
            _tell(request, fault, step)
    return 0


def _begin(request: Request, fault: Fault, step: Step) -> None:
    output = request.output
    if not output.can_ask:
        raise InputError(
            "A fault is made by hand in a terminal.",
            f"Run it there; `course drill {fault.name}` asks nobody.",
        )
    output.line(step.outcome.line, "green")
    output.lines(explanation(fault, request.language))
    if fault.patch is not None:
        output.line()
        output.line("On the reference the edit is this; make the same mistake in your own code:")
        output.lines(f"  {line}" for line in fault.patch.read_text("utf-8").splitlines())
    output.line()
    output.line("Make the mistake and save. Ctrl-C ends; your file stays as you left it.", "bold")


def _tell(request: Request, fault: Fault, step: Step) -> None:
    output, outcome = request.output, step.outcome
    if step.kind == "red":
        output.line(outcome.line, "red")
        for test in outcome.run.tests if outcome.run is not None else ():
            if test.failure is not None:
                output.line(f"  {test.name}: {test.failure.headline}")
        output.line(
            f"Caught: {pick(fault.entry.summary, request.language)} Now undo the edit and save.", "bold"
        )
    elif step.kind == "restored":
        output.line(outcome.line, "green")
        output.line("Restored. The red and the green are kept as evidence.", "bold")
    else:
        output.line(f"{outcome.line}", "yellow")
        output.line(_TOLD[step.kind])
