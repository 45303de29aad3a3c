"""A chapter's text: the whole of it, or a lab's section."""

from __future__ import annotations

import re

from course.catalog import Chapter
from course.errors import CourseError

_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<title>.*?))?[ \t]*$")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")


def read_handout(chapter: Chapter, language: str) -> str:
    """The chapter's text in a language. Raises CourseError where it can't be read."""
    path = chapter.handout(language)
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise CourseError(
            f"Chapter {chapter.id} has no handout in {language!r}: {path} is missing.",
            "Read it in another language by --lang.",
        ) from None
    except (OSError, ValueError) as error:
        raise CourseError(f"{path} can't be read: {error}.") from error


def lab_section(text: str, lab_id: str) -> str | None:
    """The section under the first heading that names the lab, subsections included; None without one."""
    lines = text.splitlines(keepends=True)
    headings = list(_headings(lines))
    named = re.compile(rf"(?<![\w.]){re.escape(lab_id)}(?!\w|\.\d)")
    for position, (start, level, title) in enumerate(headings):
        if named.search(title):
            later = (at for at, depth, _ in headings[position + 1 :] if depth <= level)
            return "".join(lines[start : next(later, len(lines))]).rstrip() + "\n"
    return None


def _headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Line number, level and title of each heading that stands in no fenced block."""
    found = []
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            closes = mark is not None and mark["fence"].startswith(fence) and not line[mark.end() :].strip()
            fence = "" if closes else fence
        elif mark is not None:
            fence = mark["fence"]
        elif heading := _HEADING.match(line):
            found.append((number, len(heading["marks"]), heading["title"] or ""))
    return found
