"""`course demo N`: a chapter's running example, played on the learner's code or on the reference."""

from __future__ import annotations

import click

from course.commands.options import pass_request
from course.commands.subject import subject_of
from course.demo import Demo, play_demo, require_demo
from course.request import Request


@click.command("demo", context_settings={"ignore_unknown_options": True})
@click.argument("chapter", metavar="N")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENT...]")
@pass_request
def command(request: Request, chapter: str, arguments: tuple[str, ...]) -> int:
    """Play chapter N's demo; what stands behind -- is handed to it.

    In a practice that has come so far it runs on your own code, elsewhere on the reference.
    """
    course, output = request.course, request.output
    found = course.chapter(chapter)
    file = require_demo(course, found)
    with subject_of(request, found) as subject:
        output.note(f"Chapter {found.id} · the demo, played on {subject.name}", "dim")
        demo = Demo(
            file=file,
            tree=subject.tree,
            package=course.manifest.package,
            arguments=arguments,
            cwd=request.start,
        )
        failure = play_demo(demo, output.raw)
    if failure is None:
        return 0
    if output.verbose and failure.traceback:
        output.note(failure.traceback.rstrip())
    output.note(f"course: The demo of chapter {found.id} failed on {subject.name}: {failure.reason}.", "red")
    return 1
