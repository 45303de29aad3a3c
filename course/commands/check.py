"""`course check [LAB…]`: a practice's labs in order, and the first deviation."""

from __future__ import annotations

from pathlib import Path

import click

from course.catalog import Chapter
from course.commands.options import json_option, pass_request
from course.console import Output
from course.deviation import HANG, Deviation, first_deviation
from course.errors import InputError
from course.evidence import Evidence, EvidenceError, lab_facts, teaching_hash
from course.manifest import LabEntry
from course.outcome import LabOutcome, Status
from course.practice import START_REF
from course.progress import lab_outcomes
from course.request import Request, command_line, free_place

_STATUS = {Status.PASSED: 0, Status.FAILED: 1, Status.SKIPPED: 1, Status.BROKEN: 3}


@click.command("check")
@click.argument("labs", nargs=-1, metavar="[LAB]...")
@click.option("--all", "everything", is_flag=True, help="Read on behind the first red.")
@json_option
@pass_request
def command(request: Request, labs: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Run the practice's labs in order and stop reading at the first red, with its first deviation."""
    practice = request.require_practice()
    chapter = request.course.practice_chapter(practice.chapter)
    asked = chosen_labs(request, chapter, labs)
    teaching = teaching_hash(practice.root, chapter.manifest.teaching_files)
    with request.output.working(f"checking {', '.join(lab.id for lab in asked)}"):
        outcomes = read_labs(request, chapter, asked, everything=everything)
    current = next((outcome for outcome in outcomes if outcome.status is not Status.PASSED), None)
    _tell_changed_tests(request, chapter)
    if as_json:
        request.output.document("check", document(request, chapter, outcomes, current))
    else:
        tell(request, chapter, outcomes)
    _keep_evidence(request, chapter, outcomes, teaching)
    return _STATUS[current.status] if current is not None else 0


def chosen_labs(request: Request, chapter: Chapter, labs: tuple[str, ...]) -> list[LabEntry]:
    """The labs that were asked for, in the chapter's order; all where none is named. Raises InputError."""
    if not labs:
        return list(chapter.manifest.lab)
    chosen = set()
    for name in labs:
        if name.lstrip("0") == chapter.id.lstrip("0"):
            chosen |= {lab.id for lab in chapter.manifest.lab}
            continue
        owner, lab = request.course.lab(name)
        if owner.id != chapter.id:
            raise InputError(
                f"Lab {lab.id} is not in this practice: it is one of chapter {chapter.id}.",
                f"Its labs: {', '.join(one.id for one in chapter.manifest.lab)}.",
            )
        chosen.add(lab.id)
    return [lab for lab in chapter.manifest.lab if lab.id in chosen]


def read_labs(
    request: Request, chapter: Chapter, asked: list[LabEntry], *, everything: bool
) -> list[LabOutcome]:
    """The outcomes in order, up to the first red, or all of them."""
    read = []
    for outcome in lab_outcomes(request.course, chapter, request.require_practice().root, asked):
        read.append(outcome)
        if outcome.status is not Status.PASSED and not everything:
            break
    return read


def _keep_evidence(request: Request, chapter: Chapter, outcomes: list[LabOutcome], teaching: str) -> None:
    """Append what was seen of each lab to the practice's evidence; a verdict stands without it too."""
    evidence = Evidence(request.require_practice())
    try:
        for outcome in outcomes:
            evidence.add("check", teaching, **lab_facts(outcome, chapter.lab(outcome.lab).first_red))
    except EvidenceError as error:
        request.output.note(error.message, "yellow")


def _tell_changed_tests(request: Request, chapter: Chapter) -> None:
    """Say so where the tests are not the course's own: their verdict is about something else."""
    name = chapter.manifest.focus_test
    own = request.require_practice().root / name
    given = chapter.labs_dir / Path(name).name
    try:
        same = own.read_bytes().replace(b"\r\n", b"\n") == given.read_bytes().replace(b"\r\n", b"\n")
    except OSError:
        same = False
    if not same:
        request.output.note(
            f"{name} is not the course's own any more; `git restore --source={START_REF} -- {name}` in the "
            "practice brings it back.",
            "yellow",
        )


def tell(request: Request, chapter: Chapter, outcomes: list[LabOutcome]) -> None:
    """Print the closing lines, the first deviation and the next command."""
    output = request.output
    told = None
    for outcome in outcomes:
        green = outcome.status is Status.PASSED
        output.paragraph(outcome.line, "green" if green else "red", indent=2)
        if not green and told is None:
            told = outcome
            tell_deviation(output, first_deviation(outcome, chapter, request.language))
    if len(outcomes) == len(chapter.manifest.lab):
        passed = sum(outcome.passed for outcome in outcomes)
        output.line(f"Chapter {chapter.id} {passed}/{chapter.test_count}", "bold")
    output.line()
    output.line("Next:")
    output.lines(f"  {line}" for line in _next_commands(request, chapter, outcomes, told))


def tell_deviation(output: Output, deviation: Deviation) -> None:
    """Print a deviation, each of its lines going on under its own text."""
    for line in deviation.lines():
        output.paragraph(f"  {line}", indent=2 + HANG)


def _next_commands(
    request: Request, chapter: Chapter, outcomes: list[LabOutcome], red: LabOutcome | None
) -> list[str]:
    if red is not None:
        check = request.next_command("check", red.lab)
        root = request.require_practice().root
        missing = [name for name in chapter.manifest.teaching_files if not (root / name).is_file()]
        if missing:
            return [request.next_command("reset", *missing), check]
        # Python's own complaint says it all; a hint would be about the lab.
        return [check] if _is_unreadable(red) else [request.next_command("hint", red.lab), check]
    order = [lab.id for lab in chapter.manifest.lab]
    if len(outcomes) == len(order):
        return closing_commands(request, chapter)
    after = order.index(outcomes[-1].lab) + 1
    return [request.next_command("check", *order[after : after + 1])]


def _is_unreadable(red: LabOutcome) -> bool:
    failures = red.run.collect_failures if red.run is not None else ()
    return any("SyntaxError" in failure.types for failure in failures)


def closing_commands(request: Request, chapter: Chapter) -> list[str]:
    """What comes after a chapter whose counted tests are green."""
    by_hand = next((line.fault for line in chapter.manifest.acceptance if line.fault), None)
    following = [one for one in request.course.practice_chapters if one.manifest.parent == chapter.id]
    practice = request.require_practice().root
    return [
        command_line("pytest", "-m", chapter.extra_marker),
        request.next_command("drill"),
        *([request.next_command("drill", "--try", by_hand)] if by_hand else []),
        request.next_command("record"),
        *(
            request.next_command("practice", one.id, free_place(practice), "--from", str(practice))
            for one in following
        ),
    ]


def document(
    request: Request, chapter: Chapter, outcomes: list[LabOutcome], current: LabOutcome | None
) -> dict[str, object]:
    """What a tutor needs, and no answer: the current lab, its goal, its first deviation, what may change."""
    deviation = first_deviation(current, chapter, request.language) if current is not None else None
    return {
        "chapter": chapter.id,
        "labs": [
            {"lab": o.lab, "passed": o.passed, "tests": o.expected, "status": o.status.value, "line": o.line}
            for o in outcomes
        ],
        "current": _current(chapter, current, deviation, request.language),
        "may_change": list(chapter.manifest.teaching_files),
    }


def _current(
    chapter: Chapter, current: LabOutcome | None, deviation: Deviation | None, language: str
) -> dict[str, object] | None:
    if current is None or deviation is None:
        return None
    lab = chapter.lab(current.lab)
    return {
        "lab": lab.id,
        "title": lab.title.get(language),
        "goal": lab.goal.get(language),
        "deviation": deviation.data(),
    }
