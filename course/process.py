"""The one place that starts processes (git has its own door): bounded, and killed with all they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from course.errors import EnvironmentFault

_FOREIGN = ("PYTEST_", "COURSE_", "COV_", "COVERAGE_", "HYPOTHESIS_")
_PYTHON = frozenset(
    (
        "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONWARNINGS",
        "PYTHONDEVMODE", "PYTHONASYNCIODEBUG", "PYTHONPYCACHEPREFIX", "PYTHONBREAKPOINT", "PYTHONPLATLIBDIR",
        "PYTHONSAFEPATH", "PYTHONFAULTHANDLER", "PYTHONPROFILEIMPORTTIME", "PYTHONVERBOSE", "PYTHONDEBUG",
    )
)  # fmt: skip


_running: set[subprocess.Popen[bytes]] = set()
_ending = False


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a process ended: its status (negative for a signal), its output, whether its deadline ended it."""

    status: int
    stdout: str
    stderr: str
    timed_out: bool
    seconds: float


def for_child(text: str | Path) -> str:
    """A path, or a text with paths, as a child of ours reads it, which is always in UTF-8 mode."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def from_child(text: str) -> str:
    """The same back."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child that judges code: nothing in it can lead the child to other code."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN) and key not in _PYTHON
    }
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", "PY_COLORS": "0"}
    return {**kept, **fixed, **(extra or {})}


def run_process(
    arguments: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    deadline: float = 600.0,
) -> Finished:
    """Run a program to its end, or kill it and its whole group after `deadline` seconds.

    Its output goes through files, so that a grandchild that keeps a pipe open can't hold this process up.
    Raises EnvironmentFault where the program can't be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.monotonic()
        process = _start(arguments, cwd, env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        # Not wait(timeout), which looks only every 50 ms.
        alarm = threading.Timer(deadline, _signal_group, [process])
        alarm.daemon = True
        alarm.start()
        try:
            process.wait()
        finally:
            alarm.cancel()
            kill_group(process)
        seconds = time.monotonic() - begun
        return Finished(
            status=process.returncode,
            stdout=_text(out),
            stderr=_text(err),
            timed_out=seconds >= deadline,
            seconds=seconds,
        )


def start_process(
    arguments: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a server that talks over pipes, in a group of its own. Raises EnvironmentFault."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return _start(arguments, cwd, env, **streams)


def _start(
    arguments: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None, **streams: Any
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own. Raises EnvironmentFault."""
    if _ending:
        raise EnvironmentFault("The command is ending: nothing is started any more.")
    try:
        process = subprocess.Popen(
            [str(argument) for argument in arguments],
            cwd=cwd,
            env=dict(env) if env is not None else child_environment(),
            start_new_session=True,
            **streams,
        )
    except OSError as error:
        raise EnvironmentFault(f"{arguments[0]} can't be started: {error.strerror}.") from error
    _running.add(process)
    return process


def end_all() -> None:
    """Kill every process that runs and start no more, because this one was told to end."""
    global _ending
    _ending = True
    for process in list(_running):
        _signal_group(process)


def end_server(process: subprocess.Popen[bytes], patience: float = 2.0) -> None:
    """End a server with its input, so that it ends what it started; kill it after `patience` seconds."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        if process.stdin is not None:
            process.stdin.close()
        process.wait(patience)
    if process.poll() is None:
        kill_group(process)
        return
    _running.discard(process)
    if process.stdout is not None:
        process.stdout.close()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and everything that it started in its group, and wait for it."""
    _signal_group(process)
    process.wait()
    _running.discard(process)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _signal_group(process: subprocess.Popen[bytes]) -> None:
    if os.name == "nt":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        if process.poll() is None:
            process.kill()


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
