"""`course list`: the chapters and labs of a course."""

from __future__ import annotations

import click

from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.request import Request


@click.command("list")
@json_option
@pass_request
def command(request: Request, as_json: bool) -> None:
    """Show chapters and labs with their counts, and progress where run inside a practice."""
    course, language = request.course, request.language
    title = pick(course.manifest.title, language)
    if as_json:
        chapters = [_chapter_data(chapter, language) for chapter in course.chapters]
        request.output.document("list", {"course": course.manifest.id, "title": title, "chapters": chapters})
        return
    request.output.line(title, "bold")
    request.output.line()
    rows = [row for chapter in course.chapters for row in _rows(chapter, language)]
    request.output.table(("", "", "Tests", "Marker"), rows, right=frozenset({2}))
    request.output.line()
    request.output.line("Next:")
    request.output.line(f"  {_next_command(request)}")


def _next_command(request: Request) -> str:
    if request.practice is not None:
        return request.next_command("check")
    chapters = request.course.practice_chapters
    if not chapters:
        return request.next_command("checkpoint", request.course.chapters[-1].id)
    return request.next_command("practice", chapters[0].id, "./mywork")


def _rows(chapter: Chapter, language: str) -> list[tuple[str, str, str, str]]:
    title = pick(chapter.manifest.title, language)
    if not chapter.is_practice:
        return [(chapter.id, title, "", "")]
    head = (chapter.id, title, str(chapter.test_count), chapter.marker)
    labs = [
        (f"  {lab.id}", pick(lab.title, language), str(lab.tests), lab.marker) for lab in chapter.manifest.lab
    ]
    return [head, *labs]


def _chapter_data(chapter: Chapter, language: str) -> dict[str, object]:
    manifest = chapter.manifest
    return {
        "id": chapter.id,
        "mode": manifest.mode,
        "title": pick(manifest.title, language),
        "summary": pick(manifest.summary, language),
        "tests": chapter.test_count,
        "labs": [
            {"id": lab.id, "marker": lab.marker, "tests": lab.tests, "title": pick(lab.title, language)}
            for lab in manifest.lab
        ],
    }
