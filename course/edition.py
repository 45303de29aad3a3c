"""What a learner's edition of a course holds: everything before a chapter, and from there on no answer.

Decision: an allow-list of names, because what is forgotten is then missing and not given away. From the first
practice chapter on, or a later one, solutions, stages, edits of the reference and what a transfer test is
judged against stay at home.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from course.catalog import EDITION, Chapter, Course
from course.errors import InputError
from course.manifest import FORMAT
from course.places import CONTENT_FOLDERS
from course.trees import starter_tree

_LEFTOVER = re.compile(r"\._.*|\.#.*|#.*|.*~|\.DS_Store|__pycache__|.*\.py[co]|\.course-partial-.*|\.git")
_LEARNERS = (
    "lab.toml", "handout.*.md", "hints.toml", "quiz.toml", "test_*.py", "demo.py", "faults/*.py",
    "transfer/README.md",
)  # fmt: skip


def first_hidden(course: Course, number: str | None) -> Chapter:
    """The chapter from which on an edition holds no answer: the given one, or the first to practise."""
    if number is not None:
        return course.practice_chapter(number)
    if not course.practice_chapters:
        raise InputError(
            f"The course {course.manifest.id} has no chapter to practise, so it has no answers to leave out.",
            "`course build --instructor` makes the wheel for everybody.",
        )
    return course.practice_chapters[0]


def course_files(course: Course) -> Iterator[str]:
    """Every file of the course's folders, leftovers of editors and installers apart."""
    for folder in CONTENT_FOLDERS:
        for path in sorted((course.root / folder).rglob("*")):
            parts = path.relative_to(course.root).parts
            if path.is_file() and not any(_LEFTOVER.fullmatch(part) for part in parts):
                yield "/".join(parts)


def edition_files(course: Course, hides: Chapter) -> Iterator[str]:
    """The files that a learner's edition takes over; `edition_note` comes to them."""
    hidden = {chapter.id for chapter in course.chapters if int(chapter.id) >= int(hides.id)}
    closed = hidden & set(withheld(course, hides))
    for name in course_files(course):
        if _travels(course, Path(name).parts, hidden, closed):
            yield name


def _travels(course: Course, parts: tuple[str, ...], hidden: set[str], closed: set[str]) -> bool:
    top, inner, rest = parts[0], parts[1], "/".join(parts[2:])
    if top == "checkpoints":
        return inner in ("course.toml", "history.toml", course.chapters[0].id)
    if inner not in course.by_id:
        return top == "starters" and inner == "_project"
    if inner not in hidden:
        return True
    if top == "labs":
        return any(fnmatchcase(rest, pattern) for pattern in _LEARNERS)
    return top == "starters" and inner not in closed


def withheld(course: Course, hides: Chapter) -> list[str]:
    """The later chapters whose starters hold answers: they grow files that a hidden chapter teaches."""
    taught = set(hides.manifest.teaching_files)
    found = []
    for chapter in course.chapters[course.chapters.index(hides) + 1 :]:
        if taught & starter_tree(chapter).keys():
            found.append(chapter.id)
        taught |= set(chapter.manifest.teaching_files)
    return found


def edition_note(course: Course, hides: Chapter) -> tuple[str, str]:
    """Name and text of the file that makes the folders a learner's edition."""
    closed = ", ".join(f'"{number}"' for number in withheld(course, hides))
    return EDITION, f'format = {FORMAT}\nhides = "{hides.id}"\nwithheld = [{closed}]\n'
