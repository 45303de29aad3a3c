"""`course list`: the chapters and labs of a course, and inside a practice how far it is."""

from __future__ import annotations

from dataclasses import dataclass

import click

from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.request import Request, free_place


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What was last seen of a lab; `holds` says whether the teaching files are still the same."""

    passed: int
    holds: bool


@click.command("list")
@json_option
@pass_request
def command(request: Request, as_json: bool) -> None:
    """Show chapters and labs with their counts, and progress where run inside a practice."""
    course, language = request.course, request.language
    title, progress = pick(course.manifest.title, language), _progress(request)
    if as_json:
        chapters = [_chapter_data(chapter, language, progress) for chapter in course.chapters]
        request.output.document("list", {"course": course.manifest.id, "title": title, "chapters": chapters})
        return
    request.output.line(title, "bold")
    request.output.line()
    rows = [row for chapter in course.chapters for row in _rows(chapter, language, progress)]
    shown = 5 if request.practice is not None else 4
    headings = ("", "", "Tests", "Marker", "Last seen")
    request.output.table(headings[:shown], [row[:shown] for row in rows], right=frozenset({2}))
    request.output.line()
    request.output.line("Next:")
    request.output.line(f"  {_next_command(request)}")


def _progress(request: Request) -> dict[str, Progress]:
    """What the practice's recorded checks last saw of each lab; nothing outside of a practice."""
    practice = request.practice
    if practice is None:
        return {}
    # Only here, because it brings modules that a plain list does without.
    from course.evidence import Evidence, teaching_hash

    chapter = request.course.chapter(practice.chapter)
    now = teaching_hash(practice.root, chapter.manifest.teaching_files)
    return {
        str(entry["lab"]): Progress(passed=entry["passed"], holds=entry.get("teaching") == now)
        for entry in Evidence(practice).entries()
        if entry.get("kind") == "check" and isinstance(entry.get("passed"), int) and "lab" in entry
    }


def _next_command(request: Request) -> str:
    if request.practice is not None:
        return request.next_command("check")
    chapters = request.course.practice_chapters
    if not chapters:
        return request.next_command("checkpoint", request.course.chapters[-1].id)
    return request.next_command("practice", chapters[0].id, free_place())


def _rows(chapter: Chapter, language: str, progress: dict[str, Progress]) -> list[tuple[str, ...]]:
    title = pick(chapter.manifest.title, language)
    if not chapter.is_practice:
        return [(chapter.id, title, "", "", "")]
    head = (chapter.id, title, str(chapter.test_count), chapter.marker, "")
    labs = []
    for lab in chapter.manifest.lab:
        seen = progress.get(lab.id)
        note = f"{seen.passed}/{lab.tests}{'' if seen.holds else ', edited since'}" if seen else ""
        labs.append((f"  {lab.id}", pick(lab.title, language), str(lab.tests), lab.marker, note))
    return [head, *labs]


def _chapter_data(chapter: Chapter, language: str, progress: dict[str, Progress]) -> dict[str, object]:
    manifest = chapter.manifest
    return {
        "id": chapter.id,
        "mode": manifest.mode,
        "title": pick(manifest.title, language),
        "summary": pick(manifest.summary, language),
        "tests": chapter.test_count,
        "labs": [
            {
                "id": lab.id,
                "marker": lab.marker,
                "tests": lab.tests,
                "title": pick(lab.title, language),
                "last_seen": {"passed": seen.passed, "holds": seen.holds}
                if (seen := progress.get(lab.id)) is not None
                else None,
            }
            for lab in manifest.lab
        ],
    }
