"""A forked run of pytest, seen from the process that forks: its start, its deadline, its end.

A request is a JSON object: `template` holds what runs of one kind agree in
(arguments, cwd, env, cache, target, earlier, settled); the rest is the run's own: `witness` (the witness's
settings), `deadline` (seconds), `libraries` (modules to have ahead), `out` and `err` (files for its output).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
from typing import Any, BinaryIO

from course.inside.pytestrun import SETTINGS, leave

_PAUSE = 0.002


class Conversation:
    """Requests from the engine and answers to it, one line of JSON each."""

    def __init__(self, requests: BinaryIO, answers: int) -> None:
        self._requests = requests
        self._answers = answers

    def next(self) -> bytes:
        """The next request; empty at the end of the input."""
        return self._requests.readline()

    def answer(self, answer: dict[str, Any]) -> None:
        os.write(self._answers, json.dumps(answer).encode("ascii") + b"\n")

    @property
    def descriptors(self) -> tuple[int, int]:
        """Those of the requests and of the answers."""
        return self._requests.fileno(), self._answers

    def close(self) -> None:
        """In a forked child: leave it to the process that forked."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def preload(names: list[str]) -> None:
    """Import library modules that runs need, so that children have them; what fails is left to them."""
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if missing:
        freeze()


def freeze() -> None:
    """Have children's collectors pass over all that is here by now, and share its pages."""
    gc.collect()
    gc.freeze()


def detach(request: dict[str, Any], conversation: Conversation) -> None:
    """In a forked child: be in a session of its own, with the output that requests of this kind have."""
    os.setsid()
    conversation.close()
    streams = [(0, os.devnull, os.O_RDONLY)]
    streams += [
        (number, request[name], os.O_WRONLY | os.O_CREAT) for number, name in ((1, "out"), (2, "err"))
    ]
    for number, path, flags in streams:
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)


def enter(request: dict[str, Any]) -> None:
    """In a forked child: begin the run that is asked for."""
    for name in ("out", "err"):
        os.truncate(request[name], 0)
    os.chdir(request["template"]["cwd"])
    os.environ[SETTINGS] = request["witness"]


def finish(pid: int, request: dict[str, Any], conversation: Conversation, begun: float) -> dict[str, Any]:
    """Wait for a child, kill all of its group at its end or its deadline, and say how it ended."""
    status, timed_out = _wait(pid, begun + request["deadline"], conversation)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    seconds = time.monotonic() - begun
    return {"status": status, "timed_out": timed_out, "seconds": seconds}


def _wait(pid: int, end: float, conversation: Conversation) -> tuple[int, bool]:
    """The child's status; killed where the deadline comes, or where nobody waits for the answer any more."""
    input_end, _ = conversation.descriptors
    handle = _handle(pid)
    try:
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status), False
            left = end - time.monotonic()
            pause = max(0.0, left if handle else min(left, _PAUSE))
            # While a run is on the engine sends nothing, so that readable input is its end.
            gone = input_end in select.select([input_end, *handle], [], [], pause)[0]
            if gone or left <= 0:
                _kill(pid)
                _, status = os.waitpid(pid, 0)
                if gone:
                    leave(0)
                return os.waitstatus_to_exitcode(status), True
    finally:
        for descriptor in handle:
            os.close(descriptor)


def _handle(pid: int) -> list[int]:
    """A descriptor that tells the child's end, where the system has such; else it is asked now and again."""
    with contextlib.suppress(AttributeError, OSError):
        return [os.pidfd_open(pid)]
    return []


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
