"""`course transfer 12 FILE`: judges the learner's own transfer test."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from course.commands.options import json_option, pass_request
from course.drill.series import reference_subject
from course.drill.transfer import Against, Transfer, TransferRow
from course.errors import InputError
from course.history import open_history
from course.request import Request
from course.runner import ColdRunner, Runner, open_runner


@click.command("transfer")
@click.argument("chapter")
@click.argument("file")
@json_option
@pass_request
def command(request: Request, chapter: str, file: str, as_json: bool) -> int:
    """Judge FILE, your own transfer test of CHAPTER: green on what is right, red on each known mistake."""
    found = request.course.practice_chapter(chapter)
    found.require_reference("`course transfer`")
    test = _test_file(request.start / file)
    with request.output.working("judging"), contextlib.ExitStack() as stack:
        history = open_history(request.course)
        subject = stack.enter_context(reference_subject(history, found))
        warm = open_runner()
        runner: Runner = stack.enter_context(warm) if warm is not None else ColdRunner()
        rows = list(Transfer(request.course, found, subject.tree, test, runner).rows(request.language))
    status = exit_status(rows)
    if as_json:
        request.output.document("transfer", {"rows": [_data(row) for row in rows], "exit": status})
        return status
    request.output.table(("", "Against", "Result", ""), [_cells(row) for row in rows])
    request.output.line()
    request.output.line(_closing(rows))
    return status


def _test_file(path: Path) -> Path:
    """The learner's file, checked. Raises InputError."""
    if not path.is_file():
        raise InputError(f"{path} is not a file.", "Name your test file, as tests/test_12_transfer.py.")
    if not (path.name.startswith("test_") and path.suffix == ".py"):
        raise InputError(f"{path.name} is not a test file's name.", "pytest finds test_*.py; rename it.")
    return path


def exit_status(rows: list[TransferRow]) -> int:
    """3 where a run is broken, 1 where the test did not do what it has to, else 0."""
    if any(row.broken and row.against is Against.WRONG for row in rows if rows[0].passed):
        return 3
    return 0 if all(row.passed for row in rows) else 1


def _cells(row: TransferRow) -> tuple[str, str, str, str]:
    return "ok" if row.passed else "--", row.name, row.remark, "" if row.passed else row.description


def _closing(rows: list[TransferRow]) -> str:
    if not all(row.passed for row in rows if row.against is Against.RIGHT):
        return "Your test is red where it has to be green: mend it before you look at what it catches."
    wrong = [row for row in rows if row.against is Against.WRONG]
    return f"{sum(row.passed for row in wrong)} of {len(wrong)} mistakes caught"


def _data(row: TransferRow) -> dict[str, object]:
    return {
        "name": row.name,
        "against": row.against.value,
        "description": row.description,
        "ok": row.passed,
        "broken": row.broken,
        "remark": row.remark,
    }
