"""`course new DIR` and `course new --chapter NN`: a new course, a new chapter, proven from the start."""

from __future__ import annotations

import click

from course.addition import add_chapter, place_of
from course.authoring import course_name, package_name, write_course
from course.commands.options import pass_request
from course.errors import InputError
from course.placement import check_destination, place
from course.request import Request, command_line, from_here


@click.command("new")
@click.argument("directory", required=False, metavar="[DIR]")
@click.option("--id", "course_id", metavar="ID", help="The new course's id; by default DIR's name.")
@click.option("--chapter", metavar="NN", help="Add chapter NN to the course that is meant here.")
@click.option("--parent", metavar="MM", help="With --chapter: the chapter that it follows, to make sure.")
@pass_request
def command(
    request: Request, directory: str | None, course_id: str | None, chapter: str | None, parent: str | None
) -> None:
    """Begin a new course in DIR, or a new chapter of this course.

    Either one passes `course verify` as it comes: replace its example, file by file.
    """
    if (directory is None) == (chapter is None):
        raise InputError(
            "A new course or a new chapter?",
            "`course new ./my-course` begins a course, `course new --chapter 02` a chapter of this one.",
        )
    if chapter is not None:
        if course_id is not None:
            raise InputError("--id names a new course.", "Leave it out with --chapter.")
        _new_chapter(request, chapter, parent)
    elif directory is not None:
        if parent is not None:
            raise InputError("--parent belongs to --chapter.", "Leave it out for a new course.")
        _new_course(request, directory, course_id)


def _new_course(request: Request, directory: str, course_id: str | None) -> None:
    destination = check_destination(directory, request.start)
    chosen = course_id if course_id is not None else course_name(destination.folder)
    package = package_name(chosen)
    with request.output.working("writing the course"):
        place(destination, lambda folder: write_course(chosen, folder))
    request.output.line(f"The course {chosen}: chapters 00 and 01 of the package {package}", "bold")
    request.output.line(f"  in  {destination.folder}")
    request.output.line()
    request.output.line("Next:")
    request.output.line(f"  cd {from_here(destination.folder)}")
    request.output.lines(f"  {command_line('course', *words)}" for words in (["verify"], ["list"]))


def _new_chapter(request: Request, number: str, parent: str | None) -> None:
    course = request.course
    course.require_whole("`course new --chapter`")
    if course.installed:
        raise InputError("An installed course can't grow.", "Run it in the course's checkout.")
    chapter_id, before = place_of(course, number, parent)
    with request.output.working("writing the chapter"):
        files = add_chapter(course, chapter_id, before)
    request.output.line(f"Chapter {chapter_id}, behind {before.id}; the pins are renewed", "bold")
    request.output.lines(f"  {name}" for name in files)
    request.output.line()
    request.output.line("Next:")
    request.output.line(f"  {request.next_command('verify', chapter_id)}")
