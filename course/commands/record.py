"""`course record`: the acceptance record of a practice."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from course.commands.options import json_option, pass_request
from course.evidence import teaching_hash, versions
from course.history import open_history
from course.record.record import Record, RecordLine
from course.request import Request, command_line


@click.command("record")
@json_option
@pass_request
def command(request: Request, as_json: bool) -> int:
    """Run everything afresh and print the acceptance record; what was not shown is said to be missing."""
    practice = request.require_practice()
    with request.output.working("running everything afresh"):
        record = Record(request.course, open_history(request.course), practice)
        lines = list(record.lines())
    complete = all(line.shown for line in lines)
    files = record.chapter.manifest.teaching_files
    facts = {
        "chapter": record.chapter.id,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "teaching": teaching_hash(practice.root, files),
        "versions": versions(),
    }
    if as_json:
        request.output.document(
            "record", {**facts, "complete": complete, "lines": [_data(line) for line in lines]}
        )
        return 0 if complete else 1
    for line in lines:
        _tell(request, line)
    request.output.line()
    request.output.line(f"{facts['time']} · teaching files {facts['teaching']}", "dim")
    return 0 if complete else 1


def _tell(request: Request, line: RecordLine) -> None:
    if line.shown:
        request.output.line(line.line, "green")
        return
    name, *arguments = line.command
    command = request.next_command(*arguments) if name == "course" else command_line(name, *arguments)
    request.output.line(f"missing: {line.line} ({line.by}; {command})", "yellow")


def _data(line: RecordLine) -> dict[str, object]:
    return {"line": line.line, "check": line.check, "shown": line.shown, "by": line.by}
