"""`course practice 12 DIR`: a new practice directory for a chapter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from course.begin import Start, demand_beginning, make_practice
from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.errors import InputError
from course.git import Git
from course.history import open_history, parent_commit
from course.placement import Destination, check_destination
from course.practice import START_REF, find_practice
from course.request import Request, command_line, from_here


@click.command("practice")
@click.argument("chapter")
@click.argument("directory", metavar="DIR")
@click.option("--from", "source", metavar="PRACTICE", help="Carry on your own code from the practice before.")
@json_option
@pass_request
def command(request: Request, chapter: str, directory: str, source: str | None, as_json: bool) -> None:
    """Make a practice directory DIR for CHAPTER: the parent checkpoint plus an answer-free starter."""
    found = request.course.practice_chapter(chapter)
    language = request.language
    destination = check_destination(directory, request.start)
    demand_beginning(request.course, found)
    with request.output.working("making the practice"):
        history = open_history(request.course)
        start = Start(course=request.course, history=history, chapter=found, language=language)
        if source is not None:
            start = _carry(request, start, source)
        make_practice(start, destination)
    if as_json:
        request.output.document(
            "practice",
            {
                "chapter": found.id,
                "language": language,
                "directory": str(destination.folder),
                "parent": parent_commit(request.course, history, found),
                "start": Git(destination.folder).run("rev-parse", START_REF),
                "next": _next_commands(found, destination),
            },
        )
        return
    _tell(request, found, destination, language)


def _carry(request: Request, start: Start, source: str) -> Start:
    """A start that carries the learner's own files on. Raises InputError, CarryError."""
    from course.carry import carried_files, carry_into, prove_on_reference
    from course.ownstart import own_start

    practice = find_practice(request.start / source)
    if practice is None:
        raise InputError(
            f"{source} is not a practice.", "Name the directory of the practice before, as ./mywork."
        )
    carried = carried_files(start.course, practice, start.chapter)
    if not carried.chapter.given:
        return own_start(start, carried)
    prove_on_reference(start.course, start.history, carried)
    return replace(start, finish=carry_into(carried, start.chapter, start.history))


def _next_commands(chapter: Chapter, destination: Destination) -> list[str]:
    there = destination.folder
    way = [] if there == Path.cwd() else [f"cd {from_here(there)}"]
    return [*way, command_line("pytest", "-m", chapter.manifest.lab[0].marker)]


def _is_ignored(outer: Path, folder: Path) -> bool:
    """Whether the repository around it knows already that the practice is none of its business."""
    return Git(outer).succeeds("check-ignore", "--quiet", "--no-index", str(folder))


def _tell(request: Request, chapter: Chapter, destination: Destination, language: str) -> None:
    output = request.output
    lab = chapter.manifest.lab[0]
    title = pick(chapter.manifest.title, language)
    output.line(f"Practice of chapter {chapter.id} · {title}", "bold")
    output.line(f"  in     {destination.folder}")
    output.line(f"  edit   {', '.join(chapter.manifest.teaching_files)}")
    output.line(f"  first  {pick(chapter.manifest.first_step or {}, language)}")
    if destination.outer is not None and not _is_ignored(destination.outer, destination.folder):
        output.line(
            f"  note   it lies inside the repository {destination.outer}: `git add` there would take it in "
            "as an embedded repository; add it to that repository's .gitignore.",
            "yellow",
        )
    output.line()
    output.line("Next:")
    for line in _next_commands(chapter, destination):
        output.line(f"  {line}")
    output.line(f"shows Lab {lab.id} 0/{lab.tests} · first red: {lab.first_red}")
