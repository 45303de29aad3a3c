"""What lies under a path, with all that git can keep of it, and a file put in its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course.errors import EnvironmentFault, InputError
from course.leftovers import partial_folder, sweep_partials

FILE, PROGRAM, LINK = "100644", "100755", "120000"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file or link: its path below the one looked at (empty for that itself), git's mode, its bytes."""

    path: str
    mode: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What was found; without entries nothing was there, or an empty folder."""

    entries: tuple[Entry, ...]
    is_folder: bool = False

    def is_file_of(self, data: bytes | None) -> bool:
        """Whether it is a plain file with just these bytes; for None whether it is nothing."""
        if data is None:
            return not self.entries and not self.is_folder
        return not self.is_folder and any(entry.mode != LINK and entry.data == data for entry in self.entries)


def look(path: Path) -> Snapshot:
    """Read what lies under a path, following no link. Raises CourseError where git can't keep it."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return Snapshot(entries=())
    try:
        if stat.S_ISDIR(found.st_mode):
            return Snapshot(entries=tuple(_entries(path)), is_folder=True)
        return Snapshot(entries=(_entry(path, ""),))
    except OSError as error:
        raise EnvironmentFault(
            f"{error.filename} can't be read, so that it can't be kept: {error.strerror}.",
            "Make it readable, or move it away.",
        ) from error


def _entries(folder: Path) -> Iterator[Entry]:
    for parent, folders, files in os.walk(folder, onerror=_raise):
        if ".git" in folders or ".git" in files:
            raise InputError(
                f"{parent} is a git repository of its own, which a commit can't keep.", "Move it away first."
            )
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(parent, name)
            yield _entry(path, path.relative_to(folder).as_posix())


def _raise(error: OSError) -> None:
    raise error


def _entry(path: Path, name: str) -> Entry:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return Entry(path=name, mode=LINK, data=os.fsencode(path.readlink()))
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is neither a file nor a folder, and can't be kept.", "Move it away first.")
    return Entry(path=name, mode=PROGRAM if mode & stat.S_IXUSR else FILE, data=path.read_bytes())


def _changed(path: Path) -> InputError:
    return InputError(f"{path} changed meanwhile and was left as it is.", "Run this again.")


def replace(path: Path, seen: Snapshot, data: bytes | None, top: Path) -> None:
    """Put a file with these bytes in the place of what was seen there; for None put nothing.

    Made aside under `top` and renamed, so that what was there or the file is whole at every moment; only a
    folder is moved away first. Raises InputError where something else is there by now, OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = top if top.stat().st_dev == path.parent.stat().st_dev else path.parent
    sweep_partials(beside, "reset")
    with partial_folder(beside, "reset", mode=0o700) as work:
        fresh = work / "fresh"
        if data is not None:
            fresh.write_bytes(data)
        if look(path) != seen:
            raise _changed(path)
        if seen.is_folder or (data is None and seen.entries):
            path.rename(work / "old")
            if look(work / "old") != seen:
                (work / "old").rename(path)
                raise _changed(path)
        if data is not None:
            fresh.replace(path)
