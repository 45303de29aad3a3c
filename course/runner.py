"""How a run of pytest is started: cold, as a fresh process, or warm, forked from one that has it loaded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import subprocess  # noqa: TID251 - only for its types; processes are started by course.process
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypedDict

from course.errors import EnvironmentFault
from course.history import cache_folder
from course.inside.pytestrun import SETTINGS
from course.leftovers import remove_partial, temporary_folder
from course.process import (
    Finished,
    child_environment,
    end_server,
    for_child,
    run_process,
    start_process,
)

PLUGINS = ("course.inside.witness", "pytest_asyncio.plugin", "_hypothesis_pytestplugin")


BYTECODE, CODE = "bytecode", "code"
_MOST, _MOST_KEPT = 16, 400


class _Answer(TypedDict):
    status: int
    timed_out: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Call:
    """One run of pytest: arguments, directory, environment, what the witness is told, deadline (seconds).

    `cache` is the folder for bytecode. `target` is the module that a fault is planted in, if one is; `alone`
    is where the fault may reach others, so that what imports those has to come behind it.
    `settled` are the files that stand before a run begins: what pytest reads before it collects, and the code
    under test, what is taught only where a fault is planted in it.
    """

    arguments: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    witness: str
    deadline: float
    cache: Path | None
    target: str
    alone: bool
    settled: Sequence[Path]


class Runner(Protocol):
    """Runs pytest with arguments in a directory."""

    def folder(self) -> contextlib.AbstractContextManager[Path]:
        """An empty folder for what a run needs to write, until its end."""

    def bytecode(self, tests: Sequence[Path]) -> Path | None:
        """The folder for bytecode of runs of these test files, made by their text; None where none is kept.

        The code under test has its own in `code` below it.
        """

    def run(self, call: Call) -> Finished:
        """Run pytest to its end or its deadline."""

    def learn(self, libraries: Sequence[str], earlier: Sequence[str]) -> None:
        """Take note of what a run imported: library modules, and the package's but for what is taught."""


class ColdRunner:
    """A fresh interpreter for each run."""

    def folder(self) -> contextlib.AbstractContextManager[Path]:
        return temporary_folder("run")

    def bytecode(self, tests: Sequence[Path]) -> Path | None:
        return _kept_bytecode(tests)

    def run(self, call: Call) -> Finished:
        request = {
            "arguments": [for_child(argument) for argument in call.arguments],
            "cache": for_child(call.cache) if call.cache is not None else None,
        }
        command = [sys.executable, "-P", "-m", "course.inside.pytestrun", *PLUGINS, json.dumps(request)]
        env = {**call.env, SETTINGS: call.witness}
        return run_process(command, cwd=call.cwd, env=env, deadline=call.deadline)

    def learn(self, libraries: Sequence[str], earlier: Sequence[str]) -> None:
        return


class WarmRunner:
    """A server that forks a child for each run; a context manager, one run at a time."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._folder = self._stack.enter_context(temporary_folder("warm"))
        # What is removed holds up no run.
        self._removal = self._stack.enter_context(ThreadPoolExecutor(1))
        self._server: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._libraries: list[str] = []
        self._earlier: list[str] = []

    def __enter__(self) -> Self:
        try:
            self._server = self._server or self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server and remove what it kept."""
        self._drop()
        self._stack.close()

    def bytecode(self, tests: Sequence[Path]) -> Path | None:
        folder = self._folder / (_digest(tests) or secrets.token_hex(8))
        (folder / CODE).mkdir(parents=True, exist_ok=True)
        return folder

    def learn(self, libraries: Sequence[str], earlier: Sequence[str]) -> None:
        self._libraries = sorted({*self._libraries, *libraries})
        self._earlier = list(dict.fromkeys([*self._earlier, *earlier]))

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        # The same each time, because runs that agree in their places can be forked from one process.
        folder = self._folder / "run"
        folder.mkdir()
        try:
            yield folder
        finally:
            old = self._folder / f"old-{secrets.token_hex(4)}"
            # A test may have taken it away.
            with contextlib.suppress(FileNotFoundError):
                folder.rename(old)
            self._removal.submit(remove_partial, old)

    def run(self, call: Call) -> Finished:
        out, err = self._folder / "out", self._folder / "err"
        request = {
            "template": {
                "arguments": [for_child(argument) for argument in call.arguments],
                "cwd": for_child(call.cwd),
                "env": {key: for_child(value) for key, value in call.env.items()},
                "cache": for_child(call.cache) if call.cache is not None else None,
                "target": call.target,
                "earlier": [] if call.alone else self._earlier,
                "settled": _settled(call.settled),
            },
            "witness": call.witness,
            "deadline": call.deadline,
            "libraries": self._libraries,
            "out": for_child(out),
            "err": for_child(err),
        }
        answer = self._ask(request)
        return Finished(
            status=answer["status"],
            stdout=out.read_text("utf-8", "replace") if out.is_file() else "",
            stderr=err.read_text("utf-8", "replace") if err.is_file() else "",
            timed_out=answer["timed_out"],
            seconds=answer["seconds"],
        )

    def _ask(self, request: Mapping[str, object]) -> _Answer:
        server = self._running()
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            server.stdin.flush()
            line = server.stdout.readline()
        except BaseException:
            self._drop()
            raise
        if not line:
            self._drop()
            raise EnvironmentFault("The warm runner ended unexpectedly.", "Run the command again.")
        answer: _Answer = json.loads(line)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        """The server, once it has said that it is ready. Raises EnvironmentFault."""
        if self._server is not None and self._server.poll() is not None:
            self._drop()
        if self._server is None:
            self._server = self._start()
        if not self._is_ready:
            assert self._server.stdout is not None
            if not self._server.stdout.readline():
                self._drop()
                raise EnvironmentFault(
                    "The warm runner did not start.", "`course doctor` says what is missing."
                )
            self._is_ready = True
        return self._server

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "course.inside.forkserver", *PLUGINS]
        return start_process(command, cwd=self._folder, env=child_environment())

    def _drop(self) -> None:
        server, self._server, self._is_ready = self._server, None, False
        if server is not None:
            end_server(server)


def can_fork() -> bool:
    """Whether this system can fork a child safely; where not, runs are cold."""
    return hasattr(os, "fork") and sys.platform != "win32"


def open_runner() -> WarmRunner | None:
    """A warm runner where the system allows one."""
    return WarmRunner() if can_fork() else None


def _digest(files: Sequence[Path]) -> str:
    """A name for the bytecode of these test files, by their text, as time stamps are too coarse.

    Empty where they are not all files.
    """
    digest = hashlib.sha256(f"{sys.executable} {sys.version}".encode())
    for file in files:
        if not file.is_file():
            return ""
        data = file.read_bytes()
        digest.update(f"{len(data)} ".encode() + data)
    return digest.hexdigest()[:16] if files else ""


def _settled(files: Sequence[Path]) -> str:
    """A name for what these files hold, and for which of them are there and can be read."""
    digest = hashlib.sha256()
    for file in files:
        data = b""
        with contextlib.suppress(OSError):
            data = file.read_bytes() if file.is_file() else b""
        digest.update(os.fsencode(file) + f"\0{len(data)} ".encode() + data)
    return digest.hexdigest()


def _kept_bytecode(tests: Sequence[Path]) -> Path | None:
    """Where bytecode of these tests, and of code under them, is kept between commands; None for nowhere.

    In the user's cache. What was not used for longest goes, so that there is never much.
    """
    digest = _digest(tests)
    if not digest:
        return None
    try:
        folder = cache_folder() / BYTECODE / digest
        (folder / CODE).mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for old in _all_but_newest(folder.parent, _MOST):
            shutil.rmtree(old, ignore_errors=True)
        for old in _all_but_newest(folder / CODE, _MOST_KEPT):
            old.unlink(missing_ok=True)
    except (OSError, EnvironmentFault):
        return None
    return folder


def _all_but_newest(folder: Path, most: int) -> list[Path]:
    found = list(folder.iterdir())
    if len(found) <= most:
        return []
    return sorted(found, key=lambda path: path.stat().st_mtime)[:-most]
