"""Putting a new directory where the user wants it: refused untouched, or there as a whole.

Decision: built beside the destination and renamed. Only an empty directory that can't be replaced (the
current one, a mount, one whose parent isn't the user's) is filled in place, its entries moved in one by one,
with a note by which the next run undoes a kill; where the last entry is in, the work is done.
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

from course.errors import CourseError, EnvironmentFault, InputError
from course.git import enclosing_repository
from course.leftovers import dead_partials, partial_folder, remove_partial, sweep_partials
from course.places import CONTENT_FOLDERS, is_course

_KIND = "practice"
_NOTE = "filled.json"
_COURSE_FOLDERS = frozenset((*CONTENT_FOLDERS, "course", "tests", "tools", ".git", ".ci"))


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
    path = (start / given).absolute()
    try:
        _refuse_dangling(path, given)
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
        in_place = exists and not _is_replaceable(folder)
        outer = enclosing_repository(folder.parent)
    except OSError as error:
        raise _os_fault(error, given) from error
    return Destination(folder=folder, given=given, in_place=in_place, outer=outer)


def _refuse_dangling(path: Path, given: str) -> None:
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            what = given if place == path else f"{given} lies behind {place}, which"
            raise InputError(f"{what} is a link to something that is not there.", "Name another directory.")


def _is_replaceable(folder: Path) -> bool:
    """Whether an empty directory may make way for another one of its name."""
    mine = os.access(folder.parent, os.W_OK | os.X_OK)
    return mine and not os.path.ismount(folder) and Path.cwd().resolve() != folder


def _refuse_taken_ground(folder: Path, given: str) -> None:
    """Refuse a destination inside a practice or inside a course's own folders."""
    for parent in folder.parents:
        if (parent / ".course" / "practice.toml").is_file():
            raise InputError(
                f"{given} lies inside another practice, {parent}.",
                "Choose a place outside of it, as ../mywork.",
            )
        own = folder.relative_to(parent).parts[0]
        if is_course(parent) and own.lower() in _COURSE_FOLDERS:
            raise InputError(
                f"{given} lies inside the course's own folder {parent / own}.",
                f"Choose a place outside of it, as {parent / 'mywork'}.",
            )
    if is_course(folder):
        raise InputError(f"{given} is not empty; nothing in it was touched.", "Name a new directory.")


def _refuse_file_parent(folder: Path, given: str) -> None:
    for parent in folder.parents:
        if parent.exists():
            if not parent.is_dir():
                raise InputError(f"{given} can't be made: {parent} is a file.", "Name another directory.")
            return


def _os_fault(error: OSError, given: str) -> CourseError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
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
    try:
        if destination.in_place:
            _fill(destination.folder, build)
        else:
            _replace(destination.folder, build)
    except OSError as error:
        raise _os_fault(error, destination.given) from error


def _replace(folder: Path, build: Callable[[Path], None]) -> None:
    """Build in the nearest directory that is there, then rename, parents that were missing included."""
    near = _first_missing(folder).parent
    sweep_partials(near, _KIND)
    with partial_folder(near, _KIND) as work:
        tree = work / "tree"
        tree.mkdir()
        build(tree)
        if folder.exists():
            shutil.copymode(folder, tree)
        _rename(tree, folder, work)


def _first_missing(folder: Path) -> Path:
    """The outermost of a path's directories that is not there, or the path itself."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    return missing[-1] if missing else folder


def _rename(tree: Path, folder: Path, work: Path) -> None:
    """Put a tree at its place in one step, by the outermost directory that is missing."""
    while True:
        top = _first_missing(folder)
        parents = Path(tempfile.mkdtemp(prefix="parents-", dir=work))
        staged = parents / folder.relative_to(top.parent)
        staged.parent.mkdir(parents=True, exist_ok=True)
        tree = tree.rename(staged)
        try:
            if os.name == "nt" and top.exists():
                top.rmdir()
            (parents / top.name).rename(top)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if folder.exists():
                raise InputError(
                    f"{folder} was made by someone else meanwhile; it was not touched.",
                    "Name another directory.",
                ) from error
        else:
            return
        tree = tree.rename(work / "tree")


def _fill(folder: Path, build: Callable[[Path], None]) -> None:
    """Build inside the folder, then move the entries up one by one, the repository last."""
    with partial_folder(folder, _KIND) as work:
        tree = work / "tree"
        try:
            tree.mkdir()
            build(tree)
            (work / _NOTE).write_text(json.dumps(_digests(tree)), "utf-8")
            for name in sorted(os.listdir(tree), key=lambda name: name == ".git"):  # noqa: PTH208 - names only
                (tree / name).rename(folder / name)
        except BaseException:
            _undo(folder, work)
            raise


def _digests(tree: Path) -> dict[str, str]:
    return {
        path.relative_to(tree).as_posix(): _digest(path)
        for path in tree.rglob("*")
        if path.is_file() and path.relative_to(tree).parts[0] != ".git"
    }


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sweep_filled(folder: Path) -> None:
    """Undo what a killed run left while it filled this folder; a file that was changed since stays."""
    for work in dead_partials(folder, _KIND):
        _undo(folder, work)


def _undo(folder: Path, work: Path) -> None:
    """Take back what was moved out of `work`; where everything was, there is nothing to take back.

    The repository moves last: a folder that has one holds a whole practice, or somebody's own work.
    """
    tree = work / "tree"
    unfinished = tree.is_dir() and any(tree.iterdir()) and not (folder / ".git").exists()
    for name, digest in (_noted(work) if unfinished else {}).items():
        file = folder / name
        if file.is_file() and not file.is_symlink() and _digest(file) == digest:
            file.unlink()
        for parent in [place for place in file.parents if place.is_relative_to(folder) and place != folder]:
            _remove_if_empty(parent)
    remove_partial(work)


def _noted(work: Path) -> dict[str, str]:
    try:
        digests: dict[str, str] = json.loads((work / _NOTE).read_bytes())
    except (OSError, ValueError):
        return {}
    return digests


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
