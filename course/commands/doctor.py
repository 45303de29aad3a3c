"""`course doctor`: what of the environment gets in the way, and how to mend it."""

from __future__ import annotations

import click

from course.commands.options import json_option, pass_request
from course.doctor.cache import clean_cache, look_at_cache
from course.doctor.finding import Finding, Level, examine
from course.doctor.interpreter import Interpreter
from course.doctor.practices import PracticeState
from course.doctor.scene import Scene
from course.doctor.surroundings import Surroundings
from course.request import Request

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.BAD: "red"}
_WIDTH = 22


@click.command("doctor")
@click.option("--clean-cache", "clean", is_flag=True, help="Remove the cached teaching histories.")
@json_option
@pass_request
def command(request: Request, clean: bool, as_json: bool) -> int:
    """Look at everything that could get in the way of a practice, and say how to mend it."""
    if clean:
        removed = clean_cache()
        if as_json:
            request.output.document("cache", {"removed": removed})
        else:
            request.output.line(removed)
        return 0
    findings = []
    for finding in examine_all(Scene(request.start, request.explicit_course)):
        findings.append(finding)
        if not as_json:
            _tell(request, finding)
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    if as_json:
        data = [
            {"level": one.level.value, "name": one.name, "seen": one.seen, "mend": one.mend or None}
            for one in findings
        ]
        request.output.document("doctor", {"findings": data, **{k.value: n for k, n in counts.items()}})
    else:
        request.output.line()
        request.output.line(", ".join(f"{counts[level]} {level.value}" for level in Level))
    return 3 if counts[Level.BAD] else 0


def examine_all(scene: Scene) -> list[Finding]:
    """Every finding, in an order that people read."""
    interpreter, surroundings, state = Interpreter(scene), Surroundings(scene), PracticeState(scene)
    return list(
        examine(
            [
                ("Python", interpreter.version),
                ("git", surroundings.git),
                ("packages", interpreter.packages),
                ("variables", surroundings.variables),
                ("pytest configuration", surroundings.pytest_configuration),
                ("other copies", interpreter.shadows),
                ("start-up code", interpreter.startup),
                ("fork", interpreter.forks),
                ("file system", surroundings.file_system),
                ("encoding", surroundings.terminal),
                ("course", state.course),
                ("practice", state.practice),
                ("cache", look_at_cache),
            ]
        )
    )


def _tell(request: Request, finding: Finding) -> None:
    output = request.output
    told = f"{finding.level.value:5}{finding.name:{_WIDTH}} {finding.seen}"
    output.paragraph(told, _STYLES[finding.level], indent=_WIDTH + 6)
    if finding.mend:
        output.line(f"     {'':{_WIDTH}} mend: {finding.mend}")
