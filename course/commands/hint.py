"""`course hint [LAB]`: the next hint of a lab, from general to specific."""

from __future__ import annotations

import click

from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.errors import EnvironmentFault, InputError
from course.hints import Hint, ShownHints, lab_hints
from course.manifest import LabEntry
from course.practice import Practice
from course.progress import current_lab
from course.request import Request


@click.command("hint")
@click.argument("lab", required=False)
@click.option("--again", is_flag=True, help="Show the hints that were shown before, and no new one.")
@json_option
@pass_request
def command(request: Request, lab: str | None, again: bool, as_json: bool) -> None:
    """Show the next hint of LAB, or of the first lab that is not green."""
    practice = request.require_practice()
    chapter = request.course.practice_chapter(practice.chapter)
    found = _asked_lab(request, practice, chapter, lab)
    if found is None:
        _tell_done(request, chapter, as_json)
        return
    hints = lab_hints(chapter, found.id, request.language)
    shown = ShownHints(practice)
    before = min(shown.count(found.id), len(hints))
    chosen = hints[:before] if again else [hints[min(before, len(hints) - 1)]]
    if as_json:
        request.output.document("hint", _data(request, found, chosen, len(hints), before))
    else:
        _tell(request, found, chosen, repeated=not again and before == len(hints))
    if chosen:
        _remember(request, shown, found, chosen[-1].number)


def _asked_lab(request: Request, practice: Practice, chapter: Chapter, lab: str | None) -> LabEntry | None:
    """The lab that is meant; None where none is named and all are green. Raises InputError."""
    if lab is None:
        with request.output.working("looking for the current lab"):
            return current_lab(request.course, chapter, practice.root)
    owner, found = request.course.lab(lab)
    if owner.id != chapter.id:
        raise InputError(
            f"Lab {found.id} is not in this practice: it is one of chapter {chapter.id}.",
            f"Its labs: {', '.join(one.id for one in chapter.manifest.lab)}.",
        )
    return found


def _remember(request: Request, shown: ShownHints, lab: LabEntry, number: int) -> None:
    """Keep what was shown; a hint is worth reading even where it can't be remembered."""
    try:
        shown.remember(lab.id, number)
    except EnvironmentFault as fault:
        request.output.note(f"This can't be remembered: {fault.message}", "yellow")


def _tell_done(request: Request, chapter: Chapter, as_json: bool) -> None:
    if as_json:
        request.output.document("hint", {"lab": None, "hints": [], "shown": 0, "total": 0, "last": True})
        return
    request.output.line(f"Every lab of chapter {chapter.id} is green: there is nothing left to hint at.")
    request.output.line(f"Next: {request.next_command('drill', chapter.id)}")


def _tell(request: Request, lab: LabEntry, hints: list[Hint], *, repeated: bool) -> None:
    output = request.output
    output.line(f"Lab {lab.id} · {pick(lab.title, request.language)}", "bold")
    again = request.next_command("hint", lab.id, "--again")
    following = request.next_command("hint", lab.id)
    if not hints:
        output.line(f"No hint of it was shown yet; the first: {following}")
        return
    for hint in hints:
        output.line(f"Hint {hint.number} of {hint.total}", "cyan")
        output.prose(hint.text)
    output.line()
    if repeated:
        output.line(f"This is the last hint there is, shown before. All of them: {again}")
    elif hints[-1].is_last:
        output.line(f"This was the last hint there is. All of them: {again}")
    else:
        output.line(f"The next one: {following}")


def _data(request: Request, lab: LabEntry, hints: list[Hint], total: int, before: int) -> dict[str, object]:
    return {
        "lab": lab.id,
        "title": pick(lab.title, request.language),
        "hints": [{"number": hint.number, "text": hint.text} for hint in hints],
        "shown": max(before, hints[-1].number if hints else 0),
        "total": total,
        "last": bool(hints) and hints[-1].is_last,
    }
