"""The cache of teaching histories: where it lies, how big it is, and its removal."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from course.doctor.finding import Finding, bad, ok
from course.errors import EnvironmentFault
from course.history import cache_folder
from course.request import command_line
from course.runner import BYTECODE

_OWN = re.compile(r"[0-9a-f]{32}|\.course-partial-history-.*")


def look_at_cache() -> Iterator[Finding]:
    """Whether histories can be kept, and how much they take."""
    folder = cache_folder()
    clean = command_line("course", "doctor", "--clean-cache")
    try:
        place = next(parent for parent in (folder, *folder.parents) if parent.exists())
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        yield bad(
            "cache",
            f"{folder} can't be written: {error.strerror}.",
            "export COURSE_CACHE_DIR=/another/folder",
        )
        return
    entries = list(_entries())
    yield ok("cache", f"{folder}, {_counted(entries)}, {_megabytes(_size(entries))}; cleaned by: {clean}")


def clean_cache() -> str:
    """Remove the histories, and nothing else; say what was removed. Raises EnvironmentFault."""
    entries = list(_entries())
    size = _size(entries)
    for entry in entries:
        try:
            shutil.rmtree(entry)
        except OSError as error:
            raise EnvironmentFault(
                f"{entry} can't be removed: {error.strerror}.", "Remove it by hand."
            ) from error
    folder = cache_folder()
    shutil.rmtree(folder / BYTECODE, ignore_errors=True)
    for empty in (folder / "history", folder):
        with contextlib.suppress(OSError):
            empty.rmdir()
    return f"{folder}: {_counted(entries)} removed, {_megabytes(size)}"


def _entries() -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        for path in sorted((cache_folder() / "history").iterdir()):
            if path.is_dir() and not path.is_symlink() and _OWN.fullmatch(path.name):
                yield path


def _size(entries: list[Path]) -> int:
    total = 0
    for entry in entries:
        for folder, _, files in os.walk(entry):
            for name in files:
                with contextlib.suppress(OSError):
                    total += Path(folder, name).lstat().st_size
    return total


def _counted(entries: list[Path]) -> str:
    return "1 history" if len(entries) == 1 else f"{len(entries)} histories"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
