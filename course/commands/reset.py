"""`course reset [FILE…]`: teaching files back to the starter, and what was there kept as a commit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from course.commands.options import json_option, pass_request
from course.errors import CourseError, EnvironmentFault, InputError
from course.kept import Kept, keep
from course.practice import Practice
from course.repository import Repository
from course.request import Request, from_here, quoted
from course.snapshot import Snapshot, look, replace
from course.starter import Files, course_starter_files, starter_files


@click.command("reset")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--yes", is_flag=True, help="Don't ask.")
@json_option
@pass_request
def command(request: Request, files: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Put the teaching files, or the FILEs among them, back to the starter.

    What was there is kept as a commit; its id, and the command that brings it back, are told.
    """
    practice = request.require_practice()
    chapter = request.course.practice_chapter(practice.chapter)
    names = _chosen(request, practice, chapter.manifest.teaching_files, files)
    repository = Repository(practice)
    starter = starter_files(repository, names)
    if starter is None:
        request.output.note(
            "The practice's own starter commit is gone; the course's present starter is used."
        )
        starter = course_starter_files(request.course, chapter, practice, names)
    changed = _changed(practice, starter)
    if changed and not yes and not _may_go_on(request, list(changed), as_json):
        request.output.line("Nothing was changed.")
        return
    changed = _changed(practice, starter)
    kept = keep(repository, changed) if any(snapshot.entries for snapshot in changed.values()) else None
    back = _way_back(practice, kept, changed)
    _replace(practice, changed, starter, back)
    _tell(request, names, list(changed), kept, back, as_json)


def _changed(practice: Practice, starter: Files) -> dict[str, Snapshot]:
    """What lies where a teaching file is not as the starter has it. Raises CourseError."""
    seen = {name: look(practice.root / name) for name in starter}
    return {name: snapshot for name, snapshot in seen.items() if not snapshot.is_file_of(starter[name])}


def _chosen(request: Request, practice: Practice, teaching: Sequence[str], files: Sequence[str]) -> list[str]:
    """The teaching files that are meant, in the manifest's order. Raises InputError."""
    chosen = {_teaching_name(request.start, practice, file, teaching) for file in files} or set(teaching)
    for name in chosen:
        _refuse_odd_folders(practice, name)
    return [name for name in teaching if name in chosen]


def _refuse_odd_folders(practice: Practice, name: str) -> None:
    """Refuse to write where a link or a file stands for one of the folders that lead to a teaching file."""
    for folder in (practice.root / name).parents:
        if folder == practice.root:
            return
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise InputError(
                f"{folder} is no folder of the practice but a link or a file; nothing was changed.",
                "Move it away first.",
            )


def _teaching_name(start: Path, practice: Practice, file: str, teaching: Sequence[str]) -> str:
    """The teaching file that a user in `start` calls `file`, whatever lies there now."""
    path = Path(os.path.normpath(start / file))
    for candidate in (path, path.parent.resolve() / path.name):
        for name in teaching:
            if candidate == practice.root / name:
                return name
    known = ", ".join(teaching)
    raise InputError(
        f"{file} is not a teaching file of this practice; nothing was changed.", f"Those: {known}."
    )


def _may_go_on(request: Request, names: list[str], as_json: bool) -> bool:
    """Ask the learner. Raises InputError where nobody can be asked."""
    if as_json or not request.output.can_ask:
        raise InputError(
            f"Nobody can be asked whether to put back {', '.join(names)}; nothing was changed.",
            "To do it without a question, add --yes.",
        )
    request.output.line(f"Back to the starter: {', '.join(names)}. What is there now is kept as a commit.")
    return request.output.agrees("Go on?")


def _replace(practice: Practice, changed: dict[str, Snapshot], starter: Files, back: str) -> None:
    hint = f"What was there is kept: {back}" if back else ""
    for name, snapshot in changed.items():
        try:
            replace(practice.root / name, snapshot, starter[name], practice.root)
        except OSError as error:
            raise EnvironmentFault(f"{name} can't be written: {error.strerror}.", hint) from error
        except CourseError as error:
            error.hint = " ".join(part for part in (error.hint, hint) if part)
            raise


def _way_back(practice: Practice, kept: Kept | None, changed: dict[str, Snapshot]) -> str:
    """The command that brings back what was kept, as it is typed from the current directory."""
    if kept is None:
        return ""
    names = [name for name, snapshot in changed.items() if snapshot.entries]
    here = Path.cwd().resolve()
    if here.is_relative_to(practice.root):
        paths = [quoted(os.path.relpath(practice.root / name, here)) for name in names]
        return f"git restore --source={kept.ref} -- {' '.join(paths)}"
    paths = [quoted(name) for name in names]
    return f"git -C {from_here(practice.root)} restore --source={kept.ref} -- {' '.join(paths)}"


def _tell(
    request: Request, names: list[str], changed: list[str], kept: Kept | None, back: str, as_json: bool
) -> None:
    if as_json:
        data = {
            "files": names,
            "changed": changed,
            "kept": kept.commit if kept is not None else None,
            "ref": kept.ref if kept is not None else None,
            "restore": back or None,
        }
        request.output.document("reset", data)
        return
    output = request.output
    if not changed:
        output.line(
            f"Nothing to do: {', '.join(names)} {'is' if len(names) == 1 else 'are'} the starter already."
        )
        return
    output.line(f"Back to the starter: {', '.join(changed)}", "bold")
    if kept is None:
        output.line("Nothing was there that had to be kept.")
        return
    output.line(f"What was there is kept as commit {kept.commit[:12]} ({kept.ref}). To get it back:")
    output.line(f"  {back}")
