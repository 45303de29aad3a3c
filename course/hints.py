"""A lab's hints, and how many of them a practice was shown."""

from __future__ import annotations

from dataclasses import dataclass

from course.catalog import Chapter, pick
from course.errors import CourseError
from course.notes import Note
from course.practice import Practice


@dataclass(frozen=True, kw_only=True)
class Hint:
    """One hint of a lab in one language: the `number`-th of `total`, counted from 1."""

    number: int
    total: int
    text: str

    @property
    def is_last(self) -> bool:
        return self.number == self.total


def lab_hints(chapter: Chapter, lab_id: str, language: str) -> list[Hint]:
    """A lab's hints, from general to specific. Raises CourseError where the course has none."""
    texts = chapter.hints().hints.get(lab_id, [])
    if not texts:
        raise CourseError(
            f"The course has no hints for Lab {lab_id}.",
            f"`course handout --lab {lab_id}` shows its section.",
        )
    return [
        Hint(number=index + 1, total=len(texts), text=pick(text, language))
        for index, text in enumerate(texts)
    ]


class ShownHints:
    """How many hints of each lab were shown in a practice; a damaged count starts at nothing."""

    def __init__(self, practice: Practice) -> None:
        self._note = Note(practice, "hints")

    def count(self, lab_id: str) -> int:
        shown = self._shown().get(lab_id)
        return shown if type(shown) is int and shown > 0 else 0

    def remember(self, lab_id: str, number: int) -> None:
        """Keep that hints up to this number were shown. Raises EnvironmentFault."""
        if number > self.count(lab_id):
            self._note.write({"shown": {**self._shown(), lab_id: number}})

    def _shown(self) -> dict[str, object]:
        shown = self._note.read().get("shown")
        return shown if isinstance(shown, dict) else {}
