"""A chapter's questions: what a learner predicted, and what a run of the named tests shows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course, pick
from course.errors import InputError
from course.labs import lab_run, run_tests
from course.notes import Note
from course.outcome import Status, TestOutcome
from course.practice import Practice
from course.progress import lab_outcomes
from course.trees import lab_tests


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question in one language; `number` counts from 1 in its chapter, `key` outlives new orders."""

    key: str
    number: int
    lab: str | None
    test: str | None
    ask: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a run says about a question: whether it shows the answer, and a remark for people."""

    question: Question
    is_shown: bool
    remark: str


def chapter_questions(course: Course, chapter: Chapter, language: str) -> list[Question]:
    """The questions of a chapter, in its order. Raises InputError where it asks none, ManifestError."""
    if not _has_quiz(chapter):
        known = ", ".join(one.id for one in course.chapters if _has_quiz(one))
        raise InputError(f"Chapter {chapter.id} asks no questions.", f"Those that do: {known or 'none'}.")
    return [
        Question(
            key=f"{chapter.id}-{_digest(next(iter(entry.ask.values())))}",
            number=number,
            lab=entry.lab,
            test=entry.test,
            ask=pick(entry.ask, language),
            answer=pick(entry.answer, language),
        )
        for number, entry in enumerate(chapter.quiz().question, start=1)
    ]


def _has_quiz(chapter: Chapter) -> bool:
    return (chapter.labs_dir / "quiz.toml").is_file()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Seen:
    """What a run saw: each test by its name, and the labs that are green."""

    def __init__(self) -> None:
        self.tests: dict[str, TestOutcome] = {}
        self.green: set[str] = set()


def read_answers(
    course: Course, chapter: Chapter, tree: Path, questions: Sequence[Question]
) -> list[Reading]:
    """Run the questions' tests in a tree and say which answers that shows. Raises NotJudged."""
    seen = _run(course, chapter, tree, questions)
    return [_reading(chapter, question, seen) for question in questions]


def _run(course: Course, chapter: Chapter, tree: Path, questions: Sequence[Question]) -> _Seen:
    named = {question.test for question in questions if question.test is not None}
    labs = {question.lab for question in questions if question.lab is not None or question.test is not None}
    asked = [lab for lab in chapter.manifest.lab if None in labs or lab.id in labs]
    seen = _Seen()
    for outcome in lab_outcomes(course, chapter, tree, asked) if asked else ():
        seen.tests |= {test.name: test for test in outcome.run.tests} if outcome.run is not None else {}
        seen.green |= {outcome.lab} if outcome.status is Status.PASSED else set()
    if named - seen.tests.keys():
        files, marker = list(lab_tests(chapter)), chapter.extra_marker
        run = run_tests(lab_run(course, chapter, tree, [], files=files, expression=marker))
        seen.tests |= {test.name: test for test in run.tests}
    return seen


def _reading(chapter: Chapter, question: Question, seen: _Seen) -> Reading:
    """A question that names no test is answered once its lab is green, at once where it names none either."""
    test = seen.tests.get(question.test) if question.test is not None else None
    if question.test is None:
        is_shown, remark = question.lab is None or question.lab in seen.green, "no test shows this one"
    else:
        is_shown = test is not None and test.status is Status.PASSED
        remark = f"shown by {question.test}: green"
    if is_shown:
        return Reading(question=question, is_shown=True, remark=remark)
    markers = test.markers if test is not None else frozenset()
    lab = question.lab or next((lab.id for lab in chapter.manifest.lab if lab.marker in markers), None)
    why = f"Lab {lab} is unfinished" if lab is not None else f"{question.test} is not green"
    return Reading(question=question, is_shown=False, remark=f"not shown yet: {why}")


class Predictions:
    """What a learner answered in a practice, and which of the course's answers a run has shown since."""

    def __init__(self, practice: Practice) -> None:
        self._note = Note(practice, "quiz")

    def given(self, question: Question) -> str | None:
        """The learner's latest answer to a question."""
        entry = next((one for one in reversed(self._entries()) if one.get("key") == question.key), None)
        return entry["answer"] if entry is not None else None

    def add(self, question: Question, answer: str, now: datetime) -> None:
        """Keep an answer of the learner's; earlier ones stay too. Raises EnvironmentFault."""
        entry = {
            "key": question.key,
            "lab": question.lab,
            "question": question.ask,
            "answer": answer,
            "time": now.isoformat(timespec="seconds"),
        }
        opened = [key for key in self._shown() if key != question.key]
        self._note.write({"answers": [*self._entries(), entry], "shown": opened})

    def is_open(self, question: Question) -> bool:
        """Whether the learner answered it and has not seen the course's answer since."""
        return self.given(question) is not None and question.key not in self._shown()

    def mark_shown(self, questions: Iterable[Question]) -> None:
        """Keep that the course's answers to these were shown. Raises EnvironmentFault."""
        keys = {question.key for question in questions if self.given(question) is not None}
        if keys - set(self._shown()):
            self._note.write({"answers": self._entries(), "shown": sorted(keys | set(self._shown()))})

    def _entries(self) -> list[dict[str, Any]]:
        entries = self._note.read().get("answers")
        found = entries if isinstance(entries, list) else []
        return [one for one in found if isinstance(one, dict) and isinstance(one.get("answer"), str)]

    def _shown(self) -> list[str]:
        shown = self._note.read().get("shown")
        return [key for key in shown if isinstance(key, str)] if isinstance(shown, list) else []
