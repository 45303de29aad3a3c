"""`course checkpoint 12`: where a chapter starts and ends, and what to run."""

from __future__ import annotations

from pathlib import Path

import click

from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.history import History, checkpoint_commit, export_commit, open_history, parent_commit
from course.placement import Destination, check_destination, place
from course.request import Request, command_line, free_place, from_here


@click.command("checkpoint")
@click.argument("chapter")
@click.option(
    "--export", metavar="DIR", help="Write the target's runnable tree, the reference included, to DIR."
)
@json_option
@pass_request
def command(request: Request, chapter: str, export: str | None, as_json: bool) -> None:
    """Show CHAPTER's parent and target commit, teaching files, labs, first red and next commands."""
    course = request.course
    found = course.chapter(chapter)
    if export is not None:
        found.require_reference("`course checkpoint --export`")
    destination = check_destination(export, request.start) if export is not None else None
    with request.output.working("building the teaching history"):
        history = open_history(course)
    if destination is not None:
        place(destination, lambda folder: export_commit(history, history.checkpoints[found.id], folder))
    data = _data(request, found, history, destination)
    if as_json:
        request.output.document("checkpoint", data)
        return
    _tell(request, found, data)


def _data(
    request: Request, chapter: Chapter, history: History, destination: Destination | None
) -> dict[str, object]:
    manifest, language = chapter.manifest, request.language
    return {
        "chapter": chapter.id,
        "mode": manifest.mode,
        "title": pick(manifest.title, language),
        "summary": pick(manifest.summary, language),
        "parent": parent_commit(request.course, history, chapter),
        "target": checkpoint_commit(request.course, history, chapter),
        "teaching_files": list(manifest.teaching_files),
        "focus_test": manifest.focus_test,
        "labs": [
            {"id": lab.id, "tests": lab.tests, "marker": lab.marker, "title": pick(lab.title, language)}
            for lab in manifest.lab
        ],
        "first_red": manifest.lab[0].first_red if manifest.lab else None,
        "exported": str(destination.folder) if destination is not None else None,
        "next": _next_commands(request, chapter, destination),
    }


def _next_commands(request: Request, chapter: Chapter, destination: Destination | None) -> list[str]:
    if destination is not None:
        test = ["-m", chapter.marker] if chapter.is_practice else [chapter.manifest.focus_test]
        way = [] if destination.folder == Path.cwd() else [f"cd {from_here(destination.folder)}"]
        return [*way, command_line("pytest", *test)]
    if chapter.is_practice:
        practice = request.practice
        return [request.next_command("practice", chapter.id, free_place(practice.root if practice else None))]
    return [request.next_command("checkpoint", chapter.id, "--export", f"./chapter-{chapter.id}")]


def _tell(request: Request, chapter: Chapter, data: dict[str, object]) -> None:
    output, manifest = request.output, chapter.manifest
    output.line(f"Chapter {chapter.id} · {data['title']}", "bold")
    output.line(f"  {data['summary']}")
    output.line(f"  mode        {manifest.mode}")
    output.line(f"  parent      {data['parent'] or 'none: it is the first chapter'}")
    output.line(f"  target      {data['target']}")
    output.line(f"  teaching    {', '.join(manifest.teaching_files) or 'none'}")
    output.line(f"  focus test  {manifest.focus_test}")
    for lab in manifest.lab:
        count = f"{lab.tests} test{'s' if lab.tests > 1 else ''}"
        output.line(f"  Lab {lab.id}    {count} · {pick(lab.title, request.language)}")
    if manifest.lab:
        output.line(
            f"  first red   Lab {manifest.lab[0].id} 0/{manifest.lab[0].tests} · {manifest.lab[0].first_red}"
        )
    if data["exported"]:
        output.line(f"  exported    {data['exported']}")
    output.line()
    output.line("Next:")
    commands = data["next"]
    output.lines(f"  {line}" for line in (commands if isinstance(commands, list) else []))
