"""What drills came to, told: lines for people, the kill matrix, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from course.catalog import pick
from course.drill.drill import DrillResult, Verdict
from course.drill.faults import Fault

STYLES = {
    Verdict.CAUGHT: "green",
    Verdict.ESCAPED: "red",
    Verdict.BROKEN: "magenta",
    Verdict.TIMED_OUT: "magenta",
    Verdict.UNSOLVED: "yellow",
}
_SIGNS = {"killed": "x", "green": "."}


def result_line(result: DrillResult) -> str:
    """One result as a line: verdict, fault, form, and who caught it or what else happened."""
    expected = set(result.fault.entry.tests)
    also = [name for name in result.killers if name not in expected and _same_lab(result, name)]
    told = f"by {', '.join(name for name in result.killers if name in expected)}" if expected else ""
    if result.verdict is not Verdict.CAUGHT:
        told = result.remark
    elif also:
        told += f"; also by {', '.join(also)}"
    if result.verdict is Verdict.UNSOLVED:
        return f"{result.verdict.value:9} {told}"
    return f"{result.verdict.value:9} {result.fault.name} ({result.form.value}) · {told}"


def _same_lab(result: DrillResult, name: str) -> bool:
    return name in result.lab_tests


def totals(results: Sequence[DrillResult]) -> str:
    """The closing line."""
    counts = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    line = f"{counts[Verdict.CAUGHT]} caught, {counts[Verdict.ESCAPED]} escaped"
    line += f", {counts[Verdict.BROKEN] + counts[Verdict.TIMED_OUT]} broken"
    return line + (f", {counts[Verdict.UNSOLVED]} unsolved" if counts[Verdict.UNSOLVED] else "")


def exit_status(results: Sequence[DrillResult]) -> int:
    """3 where a drill is broken, 1 where a fault escaped, else 0."""
    found = {result.verdict for result in results}
    if found & {Verdict.BROKEN, Verdict.TIMED_OUT}:
        return 3
    return 1 if Verdict.ESCAPED in found else 0


def matrix(results: Sequence[DrillResult]) -> list[list[str]]:
    """The kill matrix: a heading row of tests, then a row for each fault and form."""
    tests = list(dict.fromkeys(name for result in results for name in result.cells))
    rows = [["fault", "form", *tests]]
    for result in results:
        cells = [result.cells.get(name, "") for name in tests]
        rows.append([result.fault.name, result.form.value, *(_SIGNS.get(cell, cell) for cell in cells)])
    return rows


def matrix_lines(results: Sequence[DrillResult]) -> list[str]:
    """The kill matrix for a terminal, tests by number."""
    heading, *rows = matrix(results)
    tests = heading[2:]
    width = max((len(f"{row[0]} ({row[1]})") for row in rows), default=0)
    lines = [f"{number:>3}  {name}" for number, name in enumerate(tests, 1)]
    lines += ["", " " * width + "".join(f"{number:>4}" for number in range(1, len(tests) + 1))]
    for row in rows:
        signs = "".join(f"{cell if len(cell) <= 1 else '!':>4}" for cell in row[2:])
        lines.append(f"{f'{row[0]} ({row[1]})':{width}}{signs}")
    return [*lines, "", "x killed, . green, ! red but no kill"]


def as_csv(results: Sequence[DrillResult]) -> str:
    """One row a result, and one column a test."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    tests = list(dict.fromkeys(name for result in results for name in result.cells))
    writer.writerow(["fault", "form", "lab", "subject", "verdict", "remark", *tests])
    for result in results:
        fault = result.fault
        head = [
            fault.name,
            result.form.value,
            fault.entry.lab,
            result.subject,
            result.verdict.value,
            result.remark,
        ]
        writer.writerow([*head, *(result.cells.get(name, "") for name in tests)])
    return text.getvalue()


def as_data(result: DrillResult) -> dict[str, object]:
    """One result for a JSON document."""
    return {
        "fault": result.fault.name,
        "lab": result.fault.entry.lab,
        "form": result.form.value,
        "subject": result.subject,
        "verdict": result.verdict.value,
        "expected": list(result.fault.entry.tests),
        "killed_by": result.killers,
        "tests": dict(result.cells),
        "remark": result.remark,
        "seconds": round(result.seconds, 3),
    }


def explanation(fault: Fault, language: str) -> list[str]:
    """What a fault is, why people make it, and which tests must catch it."""
    return [
        f"{fault.name} · Lab {fault.entry.lab}",
        f"  what   {pick(fault.entry.summary, language)}",
        f"  why    {pick(fault.entry.reason, language)}",
        f"  killed by {', '.join(fault.entry.tests)}",
        f"  forms  {', '.join(form.value for form in fault.forms)}",
    ]
