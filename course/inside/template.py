"""Processes that have gone through pytest up to collection, and fork a child for each run from there.

One serves runs that agree in all that pytest reads before it collects: arguments, directory, environment,
configuration, conftest.py. Of the tree it has imported conftest.py and modules of the package that no
teaching module is needed for, and where faults are planted the module that they are planted in. What is
under test and stands in no such module comes in the child. Decision: that first part takes a third of a run.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from course.inside.forked import Conversation, detach, enter, finish, freeze, preload
from course.inside.pages import Ranges, read_pages, take_pages, write_own_pages
from course.inside.pytestrun import leave, run_pytest
from course.inside.witness import NAME, Witness

_MOST = 4
_UNFIT = 1


class Templates:
    """The templates of a server, by the kind of runs that they serve: those that were asked last."""

    def __init__(self, plugins: Sequence[str], conversation: Conversation) -> None:
        self._plugins = plugins
        self._conversation = conversation
        self._seen: set[str] = set()
        self._unfit: set[str] = set()
        self._live: dict[str, _Template] = {}

    def run(self, line: bytes, request: dict[str, Any]) -> dict[str, Any] | None:
        """Have a request run by a template; None where there is none for it, and it is still to be run.

        The first of its kind may be the only one, and gets no template; faults come in numbers.
        """
        kind = _digest(request["template"])
        # What to import ahead is known by the first run only.
        plain = _digest({**request["template"], "earlier": []})
        again = plain in self._seen
        self._seen.add(plain)
        if kind in self._unfit or not (again or request["template"]["target"]):
            return None
        template = self._live.pop(kind, None) or self._start(request)
        answer = template.run(line)
        if answer is None:
            template.end()
            self._unfit.add(kind)
            return None
        self._live[kind] = template
        for old in list(self._live)[:-_MOST]:
            self._live.pop(old).end()
        return answer

    def _start(self, request: dict[str, Any]) -> _Template:
        given, lines = os.pipe()
        answered, answers = os.pipe()
        pid = os.fork()
        if pid == 0:
            self.close()
            os.close(lines)
            os.close(answered)
            _become(self._plugins, request, _Served(self._conversation, given, answers))
        os.close(given)
        os.close(answers)
        return _Template(pid, lines, answered)

    def end(self) -> None:
        """End them all."""
        while self._live:
            self._live.popitem()[1].end()

    def close(self) -> None:
        """In a forked child: leave the templates to the server."""
        for template in self._live.values():
            template.close()


def _digest(kind: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(kind, sort_keys=True).encode()).hexdigest()


class _Template:
    """A template, seen from the server."""

    def __init__(self, pid: int, lines: int, answers: int) -> None:
        self._pid = pid
        self._lines = os.fdopen(lines, "wb", buffering=0)
        self._answers = os.fdopen(answers, "rb")

    def run(self, line: bytes) -> dict[str, Any] | None:
        """Have it run a request; None where it ended over it."""
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[self._lines.write(line) :]
        said = self._answers.readline()
        answer: dict[str, Any] | None = json.loads(said) if said.endswith(b"\n") else None
        return answer

    def end(self) -> None:
        self.close()
        os.waitpid(self._pid, 0)

    def close(self) -> None:
        self._lines.close()
        self._answers.close()


class _Served:
    """What a template has of its server: the engine's conversation, its own requests, and a way to answer."""

    def __init__(self, conversation: Conversation, given: int, answers: int) -> None:
        self.conversation = conversation
        self._lines = os.fdopen(given, "rb")
        self._answers = answers

    def next(self) -> bytes:
        """The next request; empty at the end."""
        return self._lines.readline()

    def answer(self, answer: dict[str, Any]) -> None:
        os.write(self._answers, json.dumps(answer).encode("ascii") + b"\n")

    def is_whole(self) -> bool:
        """Whether all descriptors are still open, whatever imported code did."""
        try:
            for descriptor in (*self.conversation.descriptors, self._lines.fileno(), self._answers):
                os.fstat(descriptor)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """In a forked child: leave it to the template."""
        self._lines.close()
        os.close(self._answers)


def _become(plugins: Sequence[str], request: dict[str, Any], served: _Served) -> NoReturn:
    """Be a template for requests like this one."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(quiet, number)
    os.close(quiet)
    kind = request["template"]
    # What hangs here hangs an ordinary run too, which then is ended as such.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request["deadline"])
    os.environ.clear()
    os.environ.update(kind["env"])
    os.chdir(kind["cwd"])
    run_pytest(plugins, kind["arguments"], kind["cache"], [_Stop(request, served)])


class _Stop:
    """The plugin that stops pytest before collection, and lets it go on in children."""

    def __init__(self, request: dict[str, Any], served: _Served) -> None:
        self._request = request
        self._served = served
        self._before = frozenset(sys.modules)
        self._pages: Ranges | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Return in children only."""
        witness = Witness(json.loads(self._request["witness"]))
        if not self._is_clean(str(session.config.rootpath), witness.package):
            leave(_UNFIT)
        session.config.pluginmanager.register(witness, NAME)
        witness.settle(self._request["template"]["earlier"])
        if threading.active_count() > 1 or not self._served.is_whole():
            leave(_UNFIT)
        capture: Any = session.config.pluginmanager.get_plugin("capturemanager")
        # Its files can't be shared by children: each has its own.
        capture.stop_global_capturing()
        signal.setitimer(signal.ITIMER_REAL, 0)
        freeze()
        self._serve(capture)

    def _is_clean(self, root: str, package: str) -> bool:
        """Whether nothing of the tree was imported yet but conftest.py."""
        if package in sys.modules:
            return False
        files = [
            getattr(sys.modules[name], "__file__", None) or "" for name in sys.modules.keys() - self._before
        ]
        own = [file for file in files if file.startswith(root + os.sep) and not file.startswith(sys.prefix)]
        return all(file.endswith(f"{os.sep}conftest.py") for file in own)

    def _serve(self, capture: Any) -> None:
        """Answer requests, and return in the child of each."""
        spare = self._fork(capture)
        while spare is not None:
            pid, pipe = spare
            line = self._served.next()
            begun = time.monotonic()
            with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
                stream.write(line)
            if not line:
                os.waitpid(pid, 0)
                leave(0)
            request = json.loads(line)
            # The next child is made while this one runs.
            preload(request["libraries"])
            spare = self._fork(capture)
            if spare is not None:
                answer = finish(pid, request, self._served.conversation, begun)
                self._pages = read_pages(self._noted) if self._pages is None else self._pages
                self._served.answer(answer)

    @property
    def _noted(self) -> Path:
        """Where the first child notes the pages that it wrote."""
        return Path(f"{self._request['out']}.pages")

    def _fork(self, capture: Any) -> tuple[int, int] | None:
        """Fork a child that waits for its request: its process id, and the pipe for it; None in the child."""
        given, pipe = os.pipe()
        pid = os.fork()
        if pid != 0:
            os.close(given)
            return pid, pipe
        os.close(pipe)
        self._served.close()
        detach(self._request, self._served.conversation)
        capture.start_global_capturing()
        capture.suspend_global_capture()
        if self._pages is None:
            atexit.register(write_own_pages, self._noted)
        else:
            take_pages(self._pages)
        with os.fdopen(given, "rb") as stream:
            line = stream.read()
        if not line:
            leave(0)
        request = json.loads(line)
        preload(request["libraries"])
        enter(request)
        return None
