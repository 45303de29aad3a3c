"""The closing lines of a test run: each lab that was asked for, counted against the course's manifest."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


class LabCount:
    """Collects each test's verdict and writes `Lab 12.1 1/2 · first red: …` at the end."""

    def __init__(self, project: Path = PROJECT) -> None:
        tool = tomllib.loads(project.read_text("utf-8")).get("tool", {})
        self.chapters: dict[str, Any] = tool.get("course", {}).get("chapter", {})
        self.selected: dict[str, set[str]] = {}
        self.passed: set[str] = set()
        self.reds: dict[str, str] = {}
        self.uncollected = ""
        self.collected = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.uncollected:
            lines = [line for line in report.longreprtext.splitlines() if line.strip()]
            self.uncollected = re.sub(r"^E\s+", "", lines[-1]) if lines else "nothing was collected"

    def pytest_collection(self) -> None:
        self.collected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers():
                self.selected.setdefault(mark.name, set()).add(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and call.excinfo is not None:
            text = str(call.excinfo.value).strip().splitlines()
            self.reds.setdefault(item.nodeid, text[0] if text else call.excinfo.typename)
        elif report.when == "call" and report.passed:
            self.passed.add(item.nodeid)
        return report

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or not self.collected:
            return
        expression = config.getoption("markexpr") or ""
        narrowed = bool(expression or config.getoption("keyword")) or any("::" in arg for arg in config.args)
        lines = [line for number in self.chapters for line in self._chapter_lines(number, expression, narrowed)]
        if lines:
            terminal.write_line("")
        for line, green in lines:
            terminal.write_line(line, green=green, red=not green)

    def _chapter_lines(self, number: str, expression: str, narrowed: bool) -> list[tuple[str, bool]]:
        """The closing lines of a chapter's labs, as far as they were asked for, and whether each is green."""
        chapter = self.chapters[number]
        asked = [lab for lab in chapter["labs"] if self._is_asked(lab, chapter, expression, narrowed)]
        lines = [self._lab_line(lab) for lab in asked]
        if asked and len(asked) == len(chapter["labs"]):
            total = sum(lab["tests"] for lab in asked)
            passed = sum(self._count(lab["marker"]) for lab in asked)
            extra = self.selected.get(chapter["extra"], set())
            star = f" · {len(extra & self.passed - self.reds.keys())} extra ★" if extra else ""
            lines.append((f"Chapter {number} {passed}/{total}{star}", passed == total))
        return lines

    def _is_asked(self, lab: dict[str, Any], chapter: dict[str, Any], expression: str, narrowed: bool) -> bool:
        if not narrowed or lab["marker"] in self.selected:
            return True
        named = {lab["marker"], chapter["marker"]} & set(re.findall(r"\w+", expression))
        return not self.selected and bool(named)

    def _lab_line(self, lab: dict[str, Any]) -> tuple[str, bool]:
        passed = self._count(lab["marker"])
        line = f"Lab {lab['id']} {passed}/{lab['tests']}"
        if passed == lab["tests"]:
            return line, True
        nodes = self.selected.get(lab["marker"], set())
        red = next((text for node, text in self.reds.items() if node in nodes), self.uncollected)
        return (f"{line} · first red: {red}" if red else line), False

    def _count(self, marker: str) -> int:
        """How many test functions with the marker are green, a function's parameters counted together."""
        functions: dict[str, bool] = {}
        for node in self.selected.get(marker, set()):
            name = node.partition("[")[0]
            functions[name] = functions.get(name, True) and node in self.passed and node not in self.reds
        return sum(functions.values())


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.collectonly:
        config.pluginmanager.register(LabCount(), "course-lab-count")
