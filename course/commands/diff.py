"""`course diff N`: what the reference changed in a chapter, once the learner has tried."""

from __future__ import annotations

import click

from course.catalog import Chapter
from course.commands.options import json_option, pass_request
from course.comparison import own_diff, reference_diff
from course.errors import InputError
from course.history import open_history
from course.practice import Practice
from course.request import Request


@click.command("diff")
@click.argument("chapter", metavar="N")
@click.option("--mine", is_flag=True, help="In a practice of chapter N: from your files to the reference's.")
@click.option("--yes", is_flag=True, help="You have tried: don't ask.")
@click.option("--no-pager", is_flag=True, help="Print it all at once, however long it is.")
@json_option
@pass_request
def command(request: Request, chapter: str, mine: bool, yes: bool, no_pager: bool, as_json: bool) -> None:
    """Show what the reference changed in chapter N's teaching files. It holds the answers."""
    course = request.course
    found = course.chapter(chapter)
    found.require_reference("`course diff`")
    if not found.manifest.teaching_files:
        known = ", ".join(one.id for one in course.chapters if one.manifest.teaching_files)
        raise InputError(f"Chapter {found.id} has no teaching files.", f"Those that have: {known}.")
    practice = _own_practice(request, found) if mine else None
    if found.is_practice and not yes and not _has_tried(request, found, as_json):
        request.output.line(f"Then try first: {request.next_command('handout', found.id)}")
        return
    with request.output.working("reading the teaching history"):
        history = open_history(course)
        if practice is None:
            text = reference_diff(course, history, found)
        else:
            text = own_diff(history, found, practice.root)
    if as_json:
        files = list(found.manifest.teaching_files)
        against = "mine" if mine else "parent"
        data = {"chapter": found.id, "from": against, "to": "reference", "files": files, "diff": text}
        request.output.document("diff", data)
    elif text:
        request.output.code(text, "diff", pager=not no_pager)
    else:
        request.output.line("There is no difference.")


def _own_practice(request: Request, chapter: Chapter) -> Practice:
    practice = request.require_practice()
    if practice.chapter != chapter.id:
        raise InputError(
            f"This is a practice of chapter {practice.chapter}, not of {chapter.id}.",
            f"Compare with its own: {request.next_command('diff', practice.chapter, '--mine')}",
        )
    return practice


def _has_tried(request: Request, chapter: Chapter, as_json: bool) -> bool:
    """Ask whether the learner has tried. Raises InputError where nobody can be asked."""
    if as_json or not request.output.can_ask:
        raise InputError(
            f"This shows the answers of chapter {chapter.id}, and nobody can be asked whether they tried.",
            "Once you have, add --yes.",
        )
    return request.output.agrees(
        f"This shows the answers of chapter {chapter.id}. Have you tried it yourself?"
    )
