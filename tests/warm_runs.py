"""One warm runner that most tests share: a plugin that conftest.py registers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.runner import WarmRunner, can_fork


class Lent(WarmRunner):
    """One warm runner, lent to whoever wants a runner; it serves one at a time and is not closed by them."""

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = threading.Lock()

    def __exit__(self, *error: object) -> None:
        return None

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        with self._one_at_a_time, super().folder() as folder:
            yield folder


@pytest.fixture(scope="session")
def lent() -> Iterator[Lent]:
    """The warm runner that most tests share."""
    runner = Lent()
    yield runner
    runner.close()


@pytest.fixture(autouse=True)
def runs_are_warm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs in this process made by one warm runner, as far as a test is not about runners (`own_runs`).

    That cold and warm runs have the same verdicts is tested where it is the question; here it saves minutes.
    """
    if can_fork() and request.node.get_closest_marker("own_runs") is None:
        runner = request.getfixturevalue("lent")
        monkeypatch.setattr("course.labs.ColdRunner", lambda: runner)
        for place in ("course.drill.series", "course.commands.transfer"):
            monkeypatch.setattr(f"{place}.open_runner", lambda: runner)
