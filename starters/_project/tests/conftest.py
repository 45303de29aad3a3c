"""The closing lines of a test run: each lab that was asked for, counted against the course's manifest."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
RED = "course_red"
LONGEST = 300


class LabCount:
    """Collects each test's verdict and writes `Lab 12.1 1/2 · first red: …` at the end."""

    def __init__(self, project: Path = PROJECT) -> None:
        tool = tomllib.loads(project.read_text("utf-8")).get("tool", {})
        self.chapters: dict[str, Any] = tool.get("course", {}).get("chapter", {})
        self.root = project.parent
        self.selected: dict[str, set[str]] = {}
        self.passed: set[str] = set()
        self.reds: dict[str, str] = {}
        self.uncollected: dict[str, str] = {}
        self.collected = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Note that this is a run of tests, not `--version` or `--markers`."""
        self.collected = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self.uncollected.setdefault(report.nodeid, _collection_error(report.longreprtext))

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note what ended pytest itself, as a teaching module does that exits when it is imported."""
        self.uncollected.setdefault("", _first_line(excinfo.value))

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Note which tests were chosen, and their markers."""
        yield
        for item in items:
            for mark in item.iter_markers():
                self.selected.setdefault(mark.name, set()).add(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the exception's own text on the report, which also crosses from a pytest-xdist worker."""
        report = yield
        if report.failed and call.excinfo is not None:
            report.user_properties.append((RED, _first_line(call.excinfo.value)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a verdict; markers too, which a run spread over workers has only here."""
        for chapter in self.chapters.values():
            for marker in (chapter["extra"], *(lab["marker"] for lab in chapter["labs"])):
                if marker in report.keywords:
                    self.selected.setdefault(marker, set()).add(report.nodeid)
        if report.failed:
            self.reds.setdefault(report.nodeid, str(dict(report.user_properties).get(RED, "failed")))
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the closing lines, after everything else."""
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or not self.collected:
            return
        lines = [line for number in self.chapters for line in self._chapter_lines(number, config)]
        if lines:
            terminal.write_line("")
        for line, green in lines:
            terminal.write_line(_encodable(line), green=green, red=not green)

    def _chapter_lines(self, number: str, config: pytest.Config) -> list[tuple[str, bool]]:
        """The closing lines of a chapter's labs, as far as they were asked for, and whether each is green."""
        chapter = self.chapters[number]
        asked = [lab for lab in chapter["labs"] if self._is_asked(lab, chapter, config)]
        lines = [self._lab_line(lab, chapter) for lab in asked]
        extra = self.selected.get(chapter["extra"], set())
        if extra and not asked:
            green = len(extra & self.passed - self.reds.keys())
            lines.append((f"Chapter {number} {green}/{len(extra)} extra ★", green == len(extra)))
        if asked and len(asked) == len(chapter["labs"]):
            total = sum(lab["tests"] for lab in asked)
            passed = sum(self._count(lab["marker"]) for lab in asked)
            star = f" · {len(extra & self.passed - self.reds.keys())} extra ★" if extra else ""
            lines.append((f"Chapter {number} {passed}/{total}{star}", all(green for _, green in lines)))
        return lines

    def _is_asked(self, lab: dict[str, Any], chapter: dict[str, Any], config: pytest.Config) -> bool:
        """Whether the run's arguments choose the lab, also where its tests could not be collected."""
        if lab["marker"] in self.selected:
            return True
        expression = config.getoption("markexpr")
        marks = {chapter["marker"], lab["marker"]}
        chosen = not expression or _selects(expression, marks)
        return chosen and not config.getoption("keyword") and self._is_covered(chapter["focus"], config)

    def _is_covered(self, focus: str, config: pytest.Config) -> bool:
        """Whether the run's paths, if it has any, lead to a chapter's test file."""
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            return True
        file = self.root / focus
        places = [arg.partition("::")[0] for arg in config.args if not self.selected or "::" not in arg]
        here = config.invocation_params.dir
        return any(file.is_relative_to((here / place).resolve()) for place in places)

    def _lab_line(self, lab: dict[str, Any], chapter: dict[str, Any]) -> tuple[str, bool]:
        passed = self._count(lab["marker"])
        line = f"Lab {lab['id']} {passed}/{lab['tests']}"
        nodes = self.selected.get(lab["marker"], set())
        if passed == lab["tests"] == len({_function(node) for node in nodes}):
            return line, True
        red = next((text for node, text in self.reds.items() if node in nodes), "")
        if not nodes:
            focus = Path(chapter["focus"]).name
            red = min(self.uncollected.items(), key=lambda one: focus not in one[0], default=("", ""))[1]
        return (f"{line} · first red: {red}" if red else line), False

    def _count(self, marker: str) -> int:
        """How many test functions with the marker are green, a function's parameters counted together."""
        functions: dict[str, bool] = {}
        for node in self.selected.get(marker, set()):
            name = _function(node)
            functions[name] = functions.get(name, True) and node in self.passed and node not in self.reds
        return sum(functions.values())


def _function(node: str) -> str:
    return node.partition("[")[0]


def _selects(expression: str, marks: set[str]) -> bool:
    """Whether a `-m` expression selects a test that has just these marks."""

    def holds(node: ast.AST) -> bool:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(holds(part) for part in parts)
            case ast.BoolOp(values=parts):
                return any(holds(part) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not holds(part)
            case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
                return name in marks
        return False

    try:
        return holds(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError:
        return False


def _first_line(error: BaseException) -> str:
    """A scaffold's own message; of everything else the type and the first line of its text, if any."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001 - an exception's own __str__ may fail
        lines = []
    kind = type(error).__name__
    first = lines[0][:LONGEST] if lines else ""
    return (
        first
        if kind == "NotImplementedError" and first
        else ": ".join(part for part in (kind, first) if part)
    )


def _collection_error(text: str) -> str:
    """The error in pytest's report of a file that could not be collected."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line.removeprefix("E ").strip() for line in lines if line.startswith("E ")]
    errors = [line for line in told if re.match(r"[A-Za-z_][\w.]*(:|$)", line)]
    return (errors or told or lines or ["nothing was collected"])[-1]


def _encodable(line: str) -> str:
    """The line with the signs that the output can't encode replaced."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for sign, plain in (("·", "-"), ("★", "*")):
        if sign.encode(encoding, "replace") == b"?":
            line = line.replace(sign, plain)
    return line.encode(encoding, "backslashreplace").decode(encoding)


def pytest_configure(config: pytest.Config) -> None:
    """Count every run that runs tests."""
    if not config.option.collectonly:
        config.pluginmanager.register(LabCount(), "course-lab-count")
