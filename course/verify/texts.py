"""The claims about a chapter's texts: languages agree, hints give nothing away, answers are shown."""

from __future__ import annotations

import re
from pathlib import Path

from course.catalog import Chapter
from course.judge import TestRun
from course.labs import run_tests, teaching_modules
from course.manifest import Text
from course.outcome import Status
from course.relations import check_text
from course.trees import lab_tests
from course.verify.answers import spelled_lines
from course.verify.bench import Workbench
from course.verify.claim import ClaimFalse
from course.verify.secrecy import chapter_answers

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def texts_agree(bench: Workbench, chapter: Chapter) -> str:
    """The handouts have the same heading levels, code blocks, counts and labs, and their links resolve."""
    languages = bench.course.manifest.languages
    texts = {language: _handout(chapter, language) for language in languages}
    first, *others = languages
    for language in others:
        for what, facts in _facts(texts[first]).items():
            theirs = _facts(texts[language])[what]
            if facts != theirs:
                raise ClaimFalse(
                    f"{what} differ between {first} and {language}: {_difference(facts, theirs)}"
                )
    for language in languages:
        for link in _LINK.findall(_FENCE.sub("", texts[language])):
            if not (chapter.labs_dir / link.partition("#")[0]).exists():
                raise ClaimFalse(f"handout.{language}.md links to {link}, which is not there")
        for lab in chapter.manifest.lab:
            if lab.id not in texts[language] or f"{lab.tests}/{lab.tests}" not in texts[language]:
                raise ClaimFalse(
                    f"handout.{language}.md does not give Lab {lab.id} with {lab.tests}/{lab.tests}"
                )
            if lab.marker not in texts[language]:
                raise ClaimFalse(f"handout.{language}.md does not say `pytest -m {lab.marker}`")
    return " and ".join(f"{language} {len(texts[language].splitlines())} lines" for language in languages)


def _handout(chapter: Chapter, language: str) -> str:
    path: Path = chapter.handout(language)
    if not path.is_file():
        raise ClaimFalse(f"labs/{chapter.id}/{path.name} is missing")
    return path.read_text("utf-8").replace("\r\n", "\n")


def _facts(text: str) -> dict[str, list[str]]:
    """What has to be the same in every language."""
    prose = _FENCE.sub("", text)
    return {
        "heading levels": re.findall(r"^(#+) ", prose, re.MULTILINE),
        "command blocks": [body for kind, body in _FENCE.findall(text) if kind == "bash"],
        "kinds of blocks": [kind for kind, _ in _FENCE.findall(text)],
        "counts": sorted(re.findall(r"(?<![\d/])\d+/\d+(?![\d/])", text)),
        "labs in headings": re.findall(r"^#+ .*?(?<![\d.])(\d+\.\d+)(?![\d.])", prose, re.MULTILINE),
    }


def _difference(first: list[str], second: list[str]) -> str:
    for one, other in zip(first, second, strict=False):
        if one != other:
            return f"{one.strip()!r} against {other.strip()!r}"
    return f"{len(first)} against {len(second)}"


def hints_hide(bench: Workbench, chapter: Chapter) -> str:
    """Each lab has at least three hints in every language, and none spells out an answer."""
    hints = chapter.hints()
    lines, _ = chapter_answers(bench, chapter)
    name = f"labs/{chapter.id}/hints.toml"
    for lab in chapter.manifest.lab:
        found = hints.hints.get(lab.id, [])
        if len(found) < 3:
            raise ClaimFalse(f"{name} has {len(found)} hints for Lab {lab.id}, expected at least 3")
        for index, hint in enumerate(found):
            check_text(hint, bench.course.manifest.languages, name, f'hints."{lab.id}"[{index}]')
            for text in hint.values():
                if spelled := spelled_lines(text, lines):
                    raise ClaimFalse(
                        f"hint {index + 1} of Lab {lab.id} spells out an answer line: {spelled[0]}"
                    )
    return f"{sum(len(found) for found in hints.hints.values())} hints"


def quiz_is_shown(bench: Workbench, chapter: Chapter) -> str:
    """Each question names a test that is there and green on the reference."""
    questions = chapter.quiz().question
    if not questions:
        raise ClaimFalse(f"labs/{chapter.id}/quiz.toml asks nothing")
    name = f"labs/{chapter.id}/quiz.toml"
    for index, question in enumerate(questions):
        texts: dict[str, Text] = {"ask": question.ask, "answer": question.answer}
        for key, text in texts.items():
            check_text(text, bench.course.manifest.languages, name, f"question[{index}].{key}")
    run = run_tests(
        TestRun(
            tree=bench.target(chapter),
            package=bench.course.manifest.package,
            modules=teaching_modules(chapter),
            files=list(lab_tests(chapter)),
            deadline=300,
        )
    )
    green = {test.name for test in run.tests if test.status is Status.PASSED}
    for index, question in enumerate(questions):
        if question.test not in green:
            raise ClaimFalse(
                f"question {index + 1} names {question.test}, which is no green test of the chapter"
            )
    return f"{len(questions)} questions"
