"""The claims about a chapter's texts: languages agree, hints give nothing away, answers are shown."""

from __future__ import annotations

import re
from pathlib import Path

from course.catalog import Chapter
from course.manifest import LabEntry, Text
from course.outcome import Status
from course.relations import check_text
from course.verify.bench import Workbench
from course.verify.claim import ClaimFalse, counted
from course.verify.secrecy import chapter_answers

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)\s]+)\)")
_HEADING_LAB = re.compile(r"^#+ .*?(?<![\d.])(\d+\.\d+)(?![\d.])", re.MULTILINE)
_COUNT = re.compile(r"(?<![\d/])\d+/\d+(?![\d/])")
_HINTS = 3


def handout_text(chapter: Chapter, language: str) -> str:
    """A chapter's text in one language. Raises ClaimFalse where there is none."""
    path: Path = chapter.handout(language)
    if not path.is_file():
        raise ClaimFalse(f"labs/{chapter.id}/{path.name} is missing")
    return path.read_text("utf-8-sig").replace("\r\n", "\n")


def code_blocks(text: str, *kinds: str) -> list[str]:
    """The fenced blocks of these kinds (`bash`), in their order."""
    return [body for kind, body in _FENCE.findall(text) if kind in kinds]


def texts_agree(bench: Workbench, chapter: Chapter) -> str:
    """The handouts have the same heading levels, code blocks, counts and labs, and their links resolve."""
    texts = {language: handout_text(chapter, language) for language in bench.course.manifest.languages}
    first, *others = texts
    for language in others:
        for what, facts in _facts(texts[first]).items():
            theirs = _facts(texts[language])[what]
            if facts != theirs:
                raise ClaimFalse(
                    f"{what} differ between {first} and {language}: {_difference(facts, theirs)}"
                )
    for language, text in texts.items():
        name = f"handout.{language}.md"
        for link in _LINK.findall(_FENCE.sub("", text)):
            if not (chapter.labs_dir / link.partition("#")[0]).exists():
                raise ClaimFalse(f"{name} links to {link}, which is not there")
        for lab in chapter.manifest.lab:
            _demand_lab(name, text, lab)
    return " and ".join(f"{language} {len(text.splitlines())} lines" for language, text in texts.items())


def _demand_lab(name: str, text: str, lab: LabEntry) -> None:
    """A handout has a heading for the lab, its count and its marker."""
    if lab.id not in _labs_in_headings(text):
        raise ClaimFalse(f"{name} has no heading for Lab {lab.id}")
    if f"{lab.tests}/{lab.tests}" not in _COUNT.findall(text):
        raise ClaimFalse(f"{name} does not give Lab {lab.id} with {lab.tests}/{lab.tests}")
    if not re.search(rf"-m {lab.marker}\b", text):
        raise ClaimFalse(f"{name} does not say `pytest -m {lab.marker}`")


def _facts(text: str) -> dict[str, list[str]]:
    """What has to be the same in every language."""
    return {
        "heading levels": re.findall(r"^(#+) ", _FENCE.sub("", text), re.MULTILINE),
        "command blocks": code_blocks(text, "bash", "sh"),
        "kinds of blocks": [kind for kind, _ in _FENCE.findall(text)],
        "counts": sorted(_COUNT.findall(text)),
        "labs in headings": _labs_in_headings(text),
    }


def _labs_in_headings(text: str) -> list[str]:
    return _HEADING_LAB.findall(_FENCE.sub("", text))


def _difference(first: list[str], second: list[str]) -> str:
    for one, other in zip(first, second, strict=False):
        if one != other:
            return f"{one.strip()!r} against {other.strip()!r}"
    return f"{len(first)} against {len(second)}"


def hints_hide(bench: Workbench, chapter: Chapter) -> str:
    """Each lab has at least three hints in every language, and none spells out an answer."""
    hints = chapter.hints().hints
    answers = chapter_answers(bench, chapter)
    name = f"labs/{chapter.id}/hints.toml"
    for unknown in hints.keys() - {lab.id for lab in chapter.manifest.lab}:
        raise ClaimFalse(f"{name} has hints for {unknown}, which is no lab of the chapter")
    for lab in chapter.manifest.lab:
        found = hints.get(lab.id, [])
        if len(found) < _HINTS:
            had = counted(len(found), "hint")
            raise ClaimFalse(f"{name} has {had} for Lab {lab.id}, expected at least {_HINTS}")
        for index, hint in enumerate(found):
            check_text(hint, bench.course.manifest.languages, name, f'hints."{lab.id}"[{index}]')
            for text in hint.values():
                if given := answers.in_prose(text):
                    raise ClaimFalse(f"hint {index + 1} of Lab {lab.id} {given}")
    return counted(sum(len(found) for found in hints.values()), "hint")


def quiz_is_shown(bench: Workbench, chapter: Chapter) -> str:
    """Each question names a test that is there and green on the reference."""
    questions = chapter.quiz().question
    name = f"labs/{chapter.id}/quiz.toml"
    if not questions:
        raise ClaimFalse(f"{name} asks nothing")
    labs = {lab.id for lab in chapter.manifest.lab}
    for index, question in enumerate(questions):
        texts: dict[str, Text] = {"ask": question.ask, "answer": question.answer}
        for key, text in texts.items():
            check_text(text, bench.course.manifest.languages, name, f"question[{index}].{key}")
        if question.lab is not None and question.lab not in labs:
            raise ClaimFalse(f"question {index + 1} is about {question.lab}, which is no lab of the chapter")
    tests = {test.name: test.status for test in bench.reference_run(chapter).tests}
    for index, question in enumerate(questions):
        if question.test is None:
            raise ClaimFalse(f"question {index + 1} names no test that shows its answer")
        if question.test not in tests:
            raise ClaimFalse(f"question {index + 1} names {question.test}, which is no test of the chapter")
        if tests[question.test] is not Status.PASSED:
            raise ClaimFalse(f"question {index + 1} names {question.test}, which is not green")
    return counted(len(questions), "question")
