"""`course verify [N…]`: the author's gate."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from course.catalog import Chapter
from course.commands.options import json_option, pass_request
from course.history import open_history
from course.outcome import Status
from course.request import Request
from course.verify.bench import Workbench
from course.verify.chapters import chapter_claims, course_claims
from course.verify.claim import Claim, Verdict, judge_claims

_SIGNS = {
    Status.PASSED: ("true", "green"),
    Status.FAILED: ("FALSE", "red"),
    Status.BROKEN: ("BROKEN", "magenta"),
}


@click.command("verify")
@click.argument("chapters", nargs=-1, metavar="[N]...")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Claims at a time."
)
@json_option
@pass_request
def command(request: Request, chapters: tuple[str, ...], jobs: int, as_json: bool) -> int:
    """Prove every claim about the chapters N, or about the whole course: one line a claim."""
    course = request.course
    chosen = [course.chapter(number) for number in chapters] or list(course.chapters)
    with request.output.working("building the teaching history"):
        history = open_history(course)
    with tempfile.TemporaryDirectory(prefix="course-verify-") as folder, ThreadPoolExecutor(jobs) as pool:
        bench = Workbench(course, history, Path(folder).resolve())
        verdicts = []
        for verdict in judge_claims(_claims(bench, chosen, whole=not chapters), pool):
            verdicts.append(verdict)
            if not as_json:
                _tell(request, verdict)
    if as_json:
        request.output.document("verify", {"claims": [_data(verdict) for verdict in verdicts]})
    else:
        _close(request, verdicts)
    return exit_status(verdicts)


def _claims(bench: Workbench, chapters: list[Chapter], *, whole: bool) -> Iterable[Claim]:
    claims = list(course_claims(bench)) if whole else []
    return claims + [claim for chapter in chapters for claim in chapter_claims(bench, chapter)]


def exit_status(verdicts: list[Verdict]) -> int:
    """3 where a claim is broken, 1 where one is false, else 0."""
    found = {verdict.status for verdict in verdicts}
    return 3 if Status.BROKEN in found else 1 if Status.FAILED in found else 0


def _tell(request: Request, verdict: Verdict) -> None:
    sign, style = _SIGNS[verdict.status]
    where = f"chapter {verdict.chapter}" if verdict.chapter else "course"
    remark = f" · {verdict.remark}" if verdict.remark else ""
    request.output.line(f"{sign:7}{where}: {verdict.sentence}{remark}", style)


def _close(request: Request, verdicts: list[Verdict]) -> None:
    counts = {status: sum(verdict.status is status for verdict in verdicts) for status in _SIGNS}
    request.output.line()
    request.output.line(
        f"{len(verdicts)} claims: {counts[Status.PASSED]} true, {counts[Status.FAILED]} false, "
        f"{counts[Status.BROKEN]} broken"
    )


def _data(verdict: Verdict) -> dict[str, object]:
    return {
        "chapter": verdict.chapter or None,
        "claim": verdict.sentence,
        "status": {Status.PASSED: "true", Status.FAILED: "false", Status.BROKEN: "broken"}[verdict.status],
        "remark": verdict.remark,
        "seconds": round(verdict.seconds, 3),
    }
