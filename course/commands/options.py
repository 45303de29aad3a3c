"""The options that commands share, and the request made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from course.console import Output
from course.errors import InputError
from course.places import installed_courses, named_course
from course.request import Request

P = ParamSpec("P")
R = TypeVar("R")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document for programs.")


def pass_request(function: Callable[Concatenate[Request, P], R]) -> Callable[..., R]:
    """Give a command its Request, made of the global options; `--lang` may stand behind the command too."""

    @click.option("--lang", "own_lang", metavar="en|zh", help="Language of the course's contents.")
    @click.pass_context
    @functools.wraps(function)
    def command(ctx: click.Context, /, *args: Any, own_lang: str | None = None, **kwargs: Any) -> R:
        directory, course_folder, lang, verbose = ctx.obj
        request = Request(
            start=absolute_folder(directory, "-C") or _current_folder(),
            explicit_course=_course_folder(course_folder),
            chosen_language=own_lang or lang,
            output=Output(verbose=verbose),
        )
        return function(request, *args, **kwargs)

    return command


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InputError("The current directory is no longer there.", "Change to one that is.") from error


def _course_folder(given: str | None) -> Path | None:
    """The folder that --course names: a directory, or the name of an installed course. Raises InputError."""
    if given is None or Path(given).is_dir():
        return absolute_folder(given, "--course")
    found = named_course(given)
    if found is None:
        names = ", ".join(sorted(one.name for one in installed_courses())) or "none"
        raise InputError(
            f"--course {given}: there is no such directory, and no installed course of this name.",
            f"Name a course's top folder, or an installed course; there is {names}.",
        )
    return found


def absolute_folder(given: str | None, option: str) -> Path | None:
    """An option's directory as an absolute path. Raises InputError where it is none."""
    if given is None:
        return None
    path = Path(given)
    if not path.is_dir():
        raise InputError(f"{option} {given}: there is no such directory.", "Name a directory that is there.")
    return path.absolute()
