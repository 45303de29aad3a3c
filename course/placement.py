"""Putting a new directory where the user wants it: refused untouched, or there as a whole.

Decision: built beside the destination and renamed; only where the destination is the current directory,
which can't be replaced under the user's feet, is it filled in place, with a note by which the next run undoes
a kill.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from course.catalog import CONTENT_FOLDERS, is_course
from course.errors import CourseError, EnvironmentFault, InputError
from course.git import enclosing_repository
from course.leftovers import dead_partials, partial_name, sweep_partials

_KIND = "practice"
_NOTE = "filled.json"
_COURSE_FOLDERS = (*CONTENT_FOLDERS, "course", "tests", "tools")


@dataclass(frozen=True, kw_only=True)
class Destination:
    """A checked place for a new directory: `folder` is absolute, `given` as the user wrote it.

    `in_place` says that the folder is there, empty, and has to be filled rather than replaced; `outer` is the
    git work tree that it lies in, if any.
    """

    folder: Path
    given: str
    in_place: bool
    outer: Path | None


def check_destination(given: str, start: Path) -> Destination:
    """Check that a new directory can be made at `given`, seen from `start`. Raises InputError."""
    if not given or "\0" in given:
        raise InputError(
            "The destination is empty or holds a NUL byte.", "Name a new directory, as ./mywork."
        )
    path = Path(os.path.abspath(start / given))  # noqa: PTH100 - symlinks must stay for the checks below
    try:
        if path.is_symlink() and not path.exists():
            raise InputError(f"{given} is a link to something that is not there.", "Name another directory.")
        folder = path.resolve()
        exists = folder.exists()
        if exists and not folder.is_dir():
            raise InputError(f"{given} is a file.", "Name a new directory, as ./mywork.")
        _refuse_taken_ground(folder, given)
        if exists:
            sweep_filled(folder)
            if any(folder.iterdir()):
                raise InputError(f"{given} is not empty; nothing in it was touched.", "Name a new directory.")
        _refuse_file_parent(folder, given)
    except OSError as error:
        raise _os_fault(error, given) from error
    in_place = exists and (Path.cwd().resolve() == folder or os.path.ismount(folder))
    return Destination(
        folder=folder, given=given, in_place=in_place, outer=enclosing_repository(folder.parent)
    )


def _refuse_taken_ground(folder: Path, given: str) -> None:
    """Refuse a destination inside a practice or inside a course's own folders."""
    for parent in folder.parents:
        if (parent / ".course" / "practice.toml").is_file():
            raise InputError(
                f"{given} lies inside another practice, {parent}.",
                "Choose a place outside of it, as ../mywork.",
            )
        own = folder.relative_to(parent).parts[0]
        if is_course(parent) and own in _COURSE_FOLDERS:
            raise InputError(
                f"{given} lies inside the course's own folder {parent / own}.",
                f"Choose a place outside of it, as {parent / 'mywork'}.",
            )
    if is_course(folder) or (folder / ".course" / "practice.toml").is_file():
        raise InputError(f"{given} is not empty; nothing in it was touched.", "Name a new directory.")


def _refuse_file_parent(folder: Path, given: str) -> None:
    for parent in folder.parents:
        if parent.exists():
            if not parent.is_dir():
                raise InputError(f"{given} can't be made: {parent} is a file.", "Name another directory.")
            return


def _os_fault(error: OSError, given: str) -> CourseError:
    if error.errno == errno.ENOSPC:
        return EnvironmentFault(f"The disk is full: {given} was not made.", "Make room, then run this again.")
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.ENOTDIR):
        return InputError(f"{given} can't be a directory: {error.strerror}.", "Name another directory.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentFault(
            f"{given} can't be made: {error.strerror}.", "Choose a place that you may write to."
        )
    return EnvironmentFault(f"{given} can't be made: {error.strerror or error}.")


def place(destination: Destination, build: Callable[[Path], None]) -> None:
    """Let `build` fill a new directory, then put it at the destination. Raises CourseError, nothing left."""
    made: list[Path] = []
    try:
        made = _make_parents(destination.folder.parent)
        if destination.in_place:
            _fill(destination.folder, build)
        else:
            _replace(destination.folder, build)
    except BaseException as error:
        for parent in reversed(made):
            _remove_if_empty(parent)
        if isinstance(error, OSError):
            raise _os_fault(error, destination.given) from error
        raise


def _make_parents(folder: Path) -> list[Path]:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def _replace(folder: Path, build: Callable[[Path], None]) -> None:
    sweep_partials(folder.parent, _KIND)
    work = Path(tempfile.mkdtemp(prefix=partial_name(_KIND), dir=folder.parent))
    try:
        tree = work / "tree"
        tree.mkdir()
        build(tree)
        try:
            if os.name == "nt" and folder.exists():
                folder.rmdir()
            tree.rename(folder)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise InputError(
                    f"{folder} was made by someone else meanwhile; it was not touched.",
                    "Name another directory.",
                ) from error
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fill(folder: Path, build: Callable[[Path], None]) -> None:
    """Build inside the folder, then move the entries up one by one, the repository last."""
    work = Path(tempfile.mkdtemp(prefix=partial_name(_KIND), dir=folder))
    tree = work / "tree"
    tree.mkdir()
    try:
        build(tree)
        (work / _NOTE).write_text(json.dumps(_digests(tree)), "utf-8")
        for name in sorted(os.listdir(tree), key=lambda name: name == ".git"):  # noqa: PTH208 - names only
            (tree / name).rename(folder / name)
    except BaseException:
        _undo(folder, work)
        raise
    shutil.rmtree(work, ignore_errors=True)


def _digests(tree: Path) -> dict[str, str]:
    return {
        path.relative_to(tree).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.rglob("*")
        if path.is_file()
    }


def sweep_filled(folder: Path) -> None:
    """Undo what a killed run left while it filled this folder; a file that was changed since stays."""
    for work in dead_partials(folder, _KIND):
        _undo(folder, work)


def _undo(folder: Path, work: Path) -> None:
    try:
        digests = json.loads((work / _NOTE).read_bytes())
    except (OSError, ValueError):
        digests = {}
    for name, digest in digests.items():
        file = folder / name
        if (
            file.is_file()
            and not file.is_symlink()
            and hashlib.sha256(file.read_bytes()).hexdigest() == digest
        ):
            file.unlink()
    inner = {parent for name in digests for parent in Path(name).parents if parent != Path()}
    for parent in sorted(inner, key=lambda path: -len(path.parts)):
        _remove_if_empty(folder / parent)
    _remove_git_skeleton(folder, digests)
    shutil.rmtree(work, ignore_errors=True)


def _remove_git_skeleton(folder: Path, digests: dict[str, str]) -> None:
    """Remove the empty folders that a new repository holds (refs/tags and the like)."""
    if not any(name.startswith(".git/") for name in digests):
        return
    for parent, _, _ in os.walk(folder / ".git", topdown=False):
        _remove_if_empty(Path(parent))
