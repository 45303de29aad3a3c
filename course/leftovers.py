"""What a killed run leaves behind: recognisable names, and their removal once the process is dead."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY, _ROOM = Path("/dev/shm"), 1 << 30
_PARTIAL = re.compile(
    r"\.?course-partial-(?P<what>[a-z]+)-(?P<host>[0-9a-f]+)-(?P<pid>\d+)-(?P<token>[0-9a-f]+)-.*"
)
_TRIES, _PAUSE = 10, 0.02
_TOKEN = secrets.token_hex(4)
_swept: set[str] = set()


def partial_name(what: str) -> str:
    """The beginning of a name for this process's unfinished work, hidden: it lies among a user's files."""
    return f".{_plain_name(what)}"


def _plain_name(what: str) -> str:
    return f"course-partial-{what}-{_host()}-{os.getpid()}-{_TOKEN}-"


def temporary_place() -> Path:
    """Where temporary folders are made: where TMPDIR says, else in memory, else in the system's place.

    Memory is where Linux keeps its own (a tmpfs, as /tmp is on many systems), if scripts may run there and a
    gigabyte is free: a run of tests makes hundreds of small files, and a disk takes a third of its time.
    """
    if not any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")) and _is_fit(_MEMORY):
        return _MEMORY
    return Path(tempfile.gettempdir()).resolve()


def _is_fit(memory: Path) -> bool:
    try:
        told = os.statvfs(memory)
        shared = memory.stat().st_mode & stat.S_ISVTX
    except (OSError, AttributeError):
        return False
    barred = getattr(os, "ST_RDONLY", 0) | getattr(os, "ST_NOEXEC", 0)
    free = told.f_bavail * told.f_frsize
    return (
        bool(shared) and not told.f_flag & barred and free >= _ROOM and os.access(memory, os.W_OK | os.X_OK)
    )


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """Make a folder for this user only in the temporary place; the next one sweeps what a kill left."""
    parent = temporary_place()
    if what not in _swept:
        _swept.add(what)
        sweep_partials(parent, what)
    # No dot before the name: code under test may pass over what lies in hidden folders.
    with _made(parent / f"{_plain_name(what)}{secrets.token_hex(4)}", 0o700) as folder:
        yield folder


@contextmanager
def partial_folder(parent: Path, what: str, *, mode: int = 0o777) -> Iterator[Path]:
    """Make a folder for unfinished work, and remove it in the end, also where Ctrl-C ends the work."""
    with _made(parent / f"{partial_name(what)}{secrets.token_hex(4)}", mode) as folder:
        yield folder


@contextmanager
def _made(folder: Path, mode: int) -> Iterator[Path]:
    # Its name is known before it is there, so that no moment is left in which nobody would remove it.
    try:
        folder.mkdir(mode)
        yield folder
    finally:
        remove_partial(folder)


def dead_partials(folder: Path, what: str) -> list[Path]:
    """The unfinished work in a folder whose process, on this machine, no longer runs."""
    found = []
    for path in folder.iterdir():
        match = _PARTIAL.fullmatch(path.name)
        if match is None or match["what"] != what or match["host"] != _host():
            continue
        if hasattr(os, "getuid") and path.lstat().st_uid != os.getuid():
            continue
        mine = int(match["pid"]) == os.getpid()
        if match["token"] != _TOKEN if mine else not _is_alive(int(match["pid"])):
            found.append(path)
    return found


def sweep_partials(folder: Path, what: str) -> None:
    """Remove what dead processes left in a folder; what can't be removed stays."""
    try:
        leftovers = dead_partials(folder, what)
    except OSError:
        return
    for path in leftovers:
        remove_partial(path)


def remove_partial(folder: Path) -> None:
    """Remove a folder; a git that outlives its killed parent may still write there for a moment."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)


def _host() -> str:
    return socket.gethostname().encode("utf-8", "surrogateescape").hex()[:16] or "0"


def _is_alive(pid: int) -> bool:
    if os.name == "nt":
        return _is_alive_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_alive_windows(pid: int) -> bool:
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    handle = kernel.OpenProcess(0x00100000, False, pid)
    if not handle:
        return False
    alive = kernel.WaitForSingleObject(handle, 0) == 0x102
    kernel.CloseHandle(handle)
    return bool(alive)
