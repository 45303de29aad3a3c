"""`course pin`: write the commit ids that the contents give into checkpoints/history.toml."""

from __future__ import annotations

import click

from course.commands.options import json_option, pass_request
from course.errors import InputError
from course.history import open_history
from course.manifest import ManifestError
from course.pins import pin_mismatches, write_pins
from course.request import Request


@click.command("pin")
@json_option
@pass_request
def command(request: Request, as_json: bool) -> None:
    """Renew the pinned commit id of every checkpoint, after the course's contents have changed."""
    course = request.course
    course.require_whole("`course pin`")
    if course.installed:
        raise InputError("An installed course's pins can't be renewed.", "Run it in the course's checkout.")
    with request.output.working("building the teaching history"):
        history = open_history(course)
    try:
        changed = pin_mismatches(course, history.checkpoints)
    except ManifestError:
        changed = sorted(history.checkpoints)
    if changed:
        write_pins(course, history.checkpoints)
    if as_json:
        request.output.document("pin", {"changed": changed, "checkpoints": history.checkpoints})
        return
    if changed:
        request.output.line(f"Pinned anew: {', '.join(changed)}.")
    else:
        request.output.line("Every pin holds; nothing was written.")
