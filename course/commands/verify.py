"""`course verify [N…]`: the author's gate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from course.catalog import Course
from course.commands.options import json_option, pass_request
from course.leftovers import temporary_folder
from course.manifest import ManifestError
from course.outcome import Status
from course.request import Request
from course.verify.bench import Workbench
from course.verify.chapters import MANIFESTS, chapter_claims, course_claims
from course.verify.claim import Claim, Verdict, counted, judge_claims

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
    verdicts = []
    for verdict in _verdicts(request, chapters, jobs):
        verdicts.append(verdict)
        if not as_json:
            _tell(request, verdict)
    if as_json:
        request.output.document("verify", {"claims": [_data(verdict) for verdict in verdicts]})
    else:
        _close(request, verdicts)
    return _exit_status(verdicts)


def _verdicts(request: Request, chapters: tuple[str, ...], jobs: int) -> Iterator[Verdict]:
    """Judge every claim; where a manifest can't be used there is only the one that it can."""
    try:
        course = request.course
        course.require_whole("`course verify`")
    except ManifestError as error:
        status = Status.FAILED
        yield Verdict(chapter="", sentence=MANIFESTS, status=status, remark=error.message, seconds=0.0)
        return
    with temporary_folder("verify") as folder, ThreadPoolExecutor(jobs) as pool:
        claims = _claims(course, chapters, folder)
        judged = judge_claims(claims, pool)
        for index, claim in enumerate(claims):
            where = _where(claim.chapter)
            with request.output.working(f"{where}: {claim.sentence} ({index + 1} of {len(claims)})"):
                verdict = next(judged)
            yield verdict


def _claims(course: Course, chapters: tuple[str, ...], folder: Path) -> list[Claim]:
    bench = Workbench(course, folder)
    chosen = [course.chapter(number) for number in chapters]
    claims = [] if chosen else list(course_claims(bench))
    for chapter in chosen or course.chapters:
        claims += chapter_claims(bench, chapter)
    return claims


def _exit_status(verdicts: list[Verdict]) -> int:
    """3 where a claim is broken, 1 where one is false, else 0."""
    found = {verdict.status for verdict in verdicts}
    return 3 if Status.BROKEN in found else 1 if Status.FAILED in found else 0


def _where(chapter: str) -> str:
    return f"chapter {chapter}" if chapter else "course"


def _tell(request: Request, verdict: Verdict) -> None:
    sign, style = _SIGNS[verdict.status]
    remark = f" · {verdict.remark}" if verdict.remark else ""
    request.output.line(f"{sign:7}{_where(verdict.chapter)}: {verdict.sentence}{remark}", style)


def _close(request: Request, verdicts: list[Verdict]) -> None:
    counts = {status: sum(verdict.status is status for verdict in verdicts) for status in _SIGNS}
    request.output.line()
    request.output.line(
        f"{counted(len(verdicts), 'claim')}: {counts[Status.PASSED]} true, {counts[Status.FAILED]} false, "
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
