"""`course handout [N]`: a chapter's text in the terminal."""

from __future__ import annotations

import click

from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.errors import CourseError, InputError
from course.handout import lab_section, read_handout
from course.request import Request


@click.command("handout")
@click.argument("chapter", required=False, metavar="[N]")
@click.option("--lab", metavar="LAB", help="Show only the section of LAB, as 12.3.")
@click.option("--no-pager", is_flag=True, help="Print it all at once, however long it is.")
@json_option
@pass_request
def command(request: Request, chapter: str | None, lab: str | None, no_pager: bool, as_json: bool) -> None:
    """Read the text of chapter N, or of the practice's chapter."""
    found, lab_id = _asked(request, chapter, lab)
    language = request.language
    text = read_handout(found, language)
    if lab_id is not None:
        section = lab_section(text, lab_id)
        if section is None:
            raise CourseError(
                f"The handout of chapter {found.id} has no heading that names Lab {lab_id}.",
                f"Read it whole: {request.next_command('handout', found.id)}",
            )
        text = section
    if as_json:
        title = pick(found.manifest.title, language)
        request.output.document(
            "handout",
            {"chapter": found.id, "lab": lab_id, "language": language, "title": title, "text": text},
        )
        return
    request.output.markdown(text, pager=not no_pager)


def _asked(request: Request, number: str | None, lab: str | None) -> tuple[Chapter, str | None]:
    """The chapter, and the lab's id if one is meant. Raises InputError."""
    course = request.course
    if lab is not None:
        owner, entry = course.lab(lab)
        if number is not None and course.chapter(number).id != owner.id:
            raise InputError(
                f"Lab {entry.id} is not one of chapter {course.chapter(number).id}.",
                f"Its section: {request.next_command('handout', '--lab', entry.id)}",
            )
        return owner, entry.id
    if number is not None:
        return course.chapter(number), None
    practice = request.practice
    if practice is None:
        known = ", ".join(chapter.id for chapter in course.chapters)
        raise InputError("Which chapter? This is not inside a practice.", f"Name one of {known}.")
    return course.chapter(practice.chapter), None
