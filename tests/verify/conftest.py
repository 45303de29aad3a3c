"""What the tests of the gate share: a copy of the tiny course to doctor, and one claim judged at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from course import projects
from course.catalog import load_course
from course.outcome import Status
from course.trees import Tree, read_template
from course.verify.bench import Workbench
from course.verify.chapters import chapter_claims, course_claims
from course.verify.claim import Verdict, judge_claim

TEMPLATE = Path(__file__).resolve().parents[2] / "starters" / "_project"


@pytest.fixture(scope="package", autouse=True)
def rendered_once() -> Iterator[None]:
    """Let Copier render the flagship's template once for the same answers: most doctored courses share it."""
    render, kept = projects.render_project, dict[str, Tree]()
    shared = read_template(TEMPLATE)

    def render_once(template: Tree, answers: dict[str, Any]) -> Tree:
        if template != shared:
            return render(template, answers)
        key = repr(answers)
        if key not in kept:
            kept[key] = render(template, answers)
        return dict(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projects, "render_project", render_once)
        yield


class Gate:
    """The gate before a course that a test doctors first: the course is read with the first claim."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder = folder
        self._work = work

    @cached_property
    def bench(self) -> Workbench:
        return Workbench(load_course(self.folder), self._work)

    def change(self, name: str, *changes: tuple[str, str]) -> None:
        """Replace texts in a file, each of which has to be there."""
        file = self.folder / name
        text = file.read_text("utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file.write_text(text, "utf-8")

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def practice(self, number: str, language: str = "en") -> Path:
        """The practice that the claims will judge."""
        return self.bench.practice(self.bench.course.chapter(number), language)

    def verdict(self, number: str, words: str) -> Verdict:
        """Judge the one claim of a chapter (of the course, for no number) that has these words."""
        bench = self.bench
        claims = chapter_claims(bench, bench.course.chapter(number)) if number else course_claims(bench)
        (claim,) = [claim for claim in claims if words in claim.sentence]
        return judge_claim(claim)

    def true(self, number: str, words: str) -> str:
        """Judge a claim that has to be true, and give the remark."""
        return self._judge(Status.PASSED, number, words)

    def false(self, number: str, words: str) -> str:
        """Judge a claim that has to be false, and give the remark."""
        return self._judge(Status.FAILED, number, words)

    def broken(self, number: str, words: str) -> str:
        """Judge a claim that can't be checked, and give the remark."""
        return self._judge(Status.BROKEN, number, words)

    def _judge(self, status: Status, number: str, words: str) -> str:
        verdict = self.verdict(number, words)
        assert verdict.status is status, verdict
        return verdict.remark


@pytest.fixture(scope="session")
def new_gate() -> type[Gate]:
    """Open a gate before another course: `new_gate(course, work)`."""
    return Gate


@pytest.fixture
def gate(tiny: Path, tmp_path: Path) -> Gate:
    """The gate before a copy of the tiny course that the test may doctor."""
    return Gate(tiny, tmp_path / "bench")
