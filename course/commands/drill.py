"""`course drill [N | FAULT…]`: plant faults, and see which tests catch them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import click

from course.catalog import Chapter
from course.commands.options import json_option, pass_request
from course.drill.drill import LEARNER, Baseline, DrillResult, Subject, Verdict
from course.drill.faults import Fault, chapter_faults, find_fault
from course.drill.report import (
    STYLES,
    as_csv,
    as_data,
    exit_status,
    explanation,
    matrix_lines,
    result_line,
    totals,
)
from course.drill.series import Series, reference_subject, workers_for
from course.errors import InputError
from course.evidence import Evidence, EvidenceError, teaching_hash
from course.history import open_history
from course.request import Request


@click.command("drill")
@click.argument("what", nargs=-1, metavar="[N|FAULT]...")
@click.option("--table", "view", flag_value="table", help="Show the kill matrix, faults by tests.")
@click.option("--csv", "view", flag_value="csv", help="Print one row a drill.")
@click.option("--show", metavar="FAULT", help="Explain a fault and show the edit by hand; run nothing.")
@click.option("--try", "by_hand", metavar="FAULT", help="In a practice: make a fault by hand, step by step.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Drills at a time.")
@json_option
@pass_request
def command(
    request: Request,
    what: tuple[str, ...],
    view: str | None,
    show: str | None,
    by_hand: str | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Plant each fault of chapter N, or each FAULT, and show which tests must catch it and which did.

    In a practice the learner's own code is broken (portable faults), elsewhere the reference.
    """
    if show is not None:
        return _show(request, show, as_json)
    if by_hand is not None:
        from course.commands.byhand import try_by_hand

        return try_by_hand(request, find_fault(request.course, by_hand))
    chosen = _chosen(request, what)
    results: list[DrillResult] = []
    quiet = as_json or view is not None
    for chapter, faults in chosen:
        teaching = _teaching(request)
        found = []
        for result in _drill(request, chapter, faults, jobs, quiet):
            found.append(result)
            if not quiet and not _is_told(result, found):
                request.output.paragraph(result_line(result), STYLES[result.verdict], indent=10)
        _keep(request, found, teaching)
        results += found
    _demand_some(results)
    _report(request, results, view, as_json)
    return exit_status(results)


def _chosen(request: Request, what: tuple[str, ...]) -> list[tuple[Chapter, list[Fault]]]:
    """The faults to plant, by chapter. Raises InputError where there are none."""
    practice = request.practice
    if not what:
        if practice is not None:
            what = (practice.chapter,)
        else:
            what = tuple(chapter.id for chapter in request.course.practice_chapters)
    chosen: dict[str, dict[str, Fault]] = {}
    for word in what:
        if word.replace(".", "", 1).isdigit():
            chapter = request.course.practice_chapter(word.partition(".")[0])
            lab = chapter.lab(f"{chapter.id}.{word.partition('.')[2]}") if "." in word else None
            faults = [f for f in chapter_faults(chapter) if lab is None or f.entry.lab == lab.id]
        else:
            fault = find_fault(request.course, word)
            chapter, faults = fault.chapter, [fault]
        chosen.setdefault(chapter.id, {}).update({fault.name: fault for fault in faults})
    if not any(chosen.values()):
        raise InputError("There is no fault to plant.", "`course drill 12` plants those of a chapter.")
    return [(request.course.chapter(key), list(faults.values())) for key, faults in chosen.items()]


@contextlib.contextmanager
def _subject(request: Request, chapter: Chapter) -> Iterator[Subject]:
    practice = request.practice
    if practice is None:
        chapter.require_reference("`course drill` outside of a practice")
        with request.output.working("building the teaching history"):
            history = open_history(request.course)
        with reference_subject(history, chapter) as subject:
            yield subject
        return
    if practice.chapter != chapter.id:
        raise InputError(
            f"This is a practice of chapter {practice.chapter}, not of {chapter.id}.",
            f"Outside of a practice `course drill {chapter.id}` drills the reference.",
        )
    yield Subject(name=LEARNER, tree=practice.root)


def _drill(
    request: Request, chapter: Chapter, faults: list[Fault], jobs: int | None, quiet: bool
) -> Iterator[DrillResult]:
    with contextlib.ExitStack() as stack:
        subject = stack.enter_context(_subject(request, chapter))
        planned = [(f, form) for f in faults for form in f.forms if form in subject.forms]
        if not planned:
            raise InputError(
                f"None of these faults can be planted in {subject.name}: they are edits of the reference.",
                "Outside of a practice `course drill FAULT` plants them in the reference.",
            )
        # One more than there are processors, because a run waits for a part of its time.
        workers = workers_for(len(planned), jobs, more=1)
        series = stack.enter_context(Series(request.course, chapter, subject, workers))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        baseline = series.baseline()
        if not quiet:
            _tell_baseline(request, chapter, subject, baseline)
            _tell_left_out(request, faults, subject)
        yield from series.run(planned, baseline, pool)


def _tell_baseline(request: Request, chapter: Chapter, subject: Subject, baseline: Baseline) -> None:
    labs = ", ".join(lab.id for lab in chapter.manifest.lab if lab.id in baseline.solved) or "none"
    request.output.line(
        f"Chapter {chapter.id} · breaking {subject.name} · green without a fault: {labs}", "bold"
    )
    request.output.paragraph("portable: planted from outside; patch: an edit of the reference's lines", "dim")


def _tell_left_out(request: Request, faults: list[Fault], subject: Subject) -> None:
    """Name the faults that have no form for this code: they are edits of the reference's own lines."""
    left_out = [fault.name for fault in faults if not set(fault.forms) & set(subject.forms)]
    if left_out:
        told = f"not for {subject.name}, an edit of the reference: {', '.join(left_out)}"
        request.output.paragraph(told, "dim", indent=2)


def _is_told(result: DrillResult, found: list[DrillResult]) -> bool:
    """Whether an earlier line says it already: one for an unsolved lab is enough."""
    same = [one for one in found if one.remark == result.remark]
    return result.verdict is Verdict.UNSOLVED and len(same) > 1


def _teaching(request: Request) -> str:
    """In a practice, the hash of what is drilled."""
    if request.practice is None:
        return ""
    files = request.course.practice_chapter(request.practice.chapter).manifest.teaching_files
    return teaching_hash(request.practice.root, files)


def _keep(request: Request, results: list[DrillResult], teaching: str) -> None:
    """In a practice drills are evidence."""
    if request.practice is None:
        return
    evidence = Evidence(request.practice)
    try:
        for result in results:
            fault, verdict = result.fault, result.verdict.value
            evidence.add("drill", teaching, fault=fault.name, lab=fault.entry.lab, verdict=verdict)
    except EvidenceError as error:
        request.output.note(error.message, "yellow")


def _demand_some(results: list[DrillResult]) -> None:
    if all(result.verdict is Verdict.UNSOLVED for result in results):
        first = results[0].remark if results else "no lab is solved"
        raise InputError(
            f"No fault was planted: {first}.", "Solve the lab first; `course check` shows where it stands."
        )


def _report(request: Request, results: list[DrillResult], view: str | None, as_json: bool) -> None:
    if as_json:
        data = {"results": [as_data(result) for result in results], "exit": exit_status(results)}
        request.output.document("drill", data)
    elif view == "csv":
        request.output.raw(as_csv(results))
    elif view == "table":
        request.output.lines(matrix_lines(results))
    if not as_json and view != "csv":
        request.output.line()
        request.output.line(totals(results))


def _show(request: Request, name: str, as_json: bool) -> int:
    fault = find_fault(request.course, name)
    edit = fault.patch.read_text("utf-8") if fault.patch is not None and request.practice is None else ""
    if as_json:
        lines = explanation(fault, request.language)
        request.output.document(
            "fault", {"name": fault.name, "lab": fault.entry.lab, "text": lines, "edit": edit}
        )
        return 0
    request.output.lines(explanation(fault, request.language))
    if edit:
        request.output.line()
        request.output.line("The edit by hand, on the reference:")
        request.output.lines(edit.splitlines())
    elif request.practice is not None:
        request.output.line(
            f"`course drill --try {fault.name}` leads through the edit once the lab is solved."
        )
    return 0
