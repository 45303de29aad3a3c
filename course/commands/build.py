"""`course build --learner | --instructor`: a wheel of the course."""

from __future__ import annotations

from pathlib import Path

import click

from course.catalog import Chapter, Course
from course.commands.options import json_option, pass_request
from course.edition import first_hidden
from course.errors import CourseError, InputError
from course.history import open_history
from course.pins import pin_mismatches, read_pins
from course.request import Request, command_line, from_here
from course.verify.search import Search
from course.wheel import build_wheel


class AnswersGivenAway(CourseError):
    """A learner's edition would hold an answer."""

    exit_status = 1


@click.command("build")
@click.option("--learner", "edition", flag_value="learner", help="For a class: without the answers.")
@click.option("--instructor", "edition", flag_value="instructor", help="The whole course.")
@click.option("--chapter", metavar="N", help="With --learner: no answers from chapter N on, all before it.")
@click.option("--out", metavar="DIR", default="dist", show_default=True, help="Where the wheel goes.")
@json_option
@pass_request
def command(request: Request, edition: str | None, chapter: str | None, out: str, as_json: bool) -> None:
    """Build a wheel of the course, for learners or for instructors.

    A learner's edition holds no solution, stage or edit of the reference from the first practice chapter on,
    or from chapter N on; what is built is searched for answers before it is put in its place.
    """
    course = request.course
    course.require_whole("`course build`")
    hides = _hides(course, edition, chapter)
    with request.output.working("building the wheel"):
        _demand_pins(course)
        wheel = build_wheel(course, hides, request.start / out, lambda one: _judge(course, hides, one))
    if as_json:
        hidden = hides.id if hides is not None else None
        request.output.document("build", {"edition": edition, "hides": hidden, "wheel": str(wheel)})
        return
    what = f"learner's edition, no answers from chapter {hides.id} on" if hides else "the whole course"
    request.output.line(f"{wheel.name} · {what}", "bold")
    request.output.line("Next:")
    request.output.line(f"  {command_line('pip', 'install')} {from_here(wheel)}")


def _hides(course: Course, edition: str | None, chapter: str | None) -> Chapter | None:
    """The chapter from which on the wheel holds no answers, None for the whole. Raises InputError."""
    if edition is None:
        raise InputError("Which edition?", "--learner leaves the answers out, --instructor is the whole.")
    if edition == "learner":
        return first_hidden(course, chapter)
    if chapter is not None:
        raise InputError("--chapter is for a learner's edition.", "An instructor's wheel holds all.")
    return None


def _demand_pins(course: Course) -> None:
    """Refuse to build what would be refused where it is installed. Raises InputError."""
    wrong = pin_mismatches(course, open_history(course).checkpoints)
    if wrong or read_pins(course) is None:
        raise InputError(
            f"The contents are not what is pinned (checkpoints {', '.join(wrong)}), so no learner could use "
            "the wheel.",
            "`course verify` proves the course, `course pin` pins it.",
        )


def _judge(course: Course, hides: Chapter | None, wheel: Path) -> None:
    """Search a learner's wheel for answers. Raises AnswersGivenAway."""
    if hides is None:
        return
    hidden = [one for one in course.chapters if int(one.id) >= int(hides.id) and one.manifest.teaching_files]
    found = list(Search(course, hidden).in_archive(wheel.name, wheel.read_bytes()))
    if found:
        more = f" ({len(found) - 1} files more)" if len(found) > 1 else ""
        told = found[0].removeprefix(f"{wheel.name}/")
        raise AnswersGivenAway(
            f"No wheel was made, it would give answers away: {told}{more}.",
            "Change that file so that it does not share the reference's own lines.",
        )
