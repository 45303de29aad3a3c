"""Watching, from inside a run, for calls that end its process or close what pytest needs."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

_MOST = 256
_STREAMS = Path("/dev/fd")

Frames = list[tuple[str, int]]


class ExitWatch:
    """Calls `tell` with a call's name and the frames that lead to it (file, line), outermost first."""

    def __init__(self, tell: Callable[[str, Frames], None]) -> None:
        self._tell = tell
        self._needed: frozenset[int] = frozenset()
        self._is_over = False

    def begin(self) -> None:
        """Watch from now on; what is open now is what is needed."""
        leave = os._exit
        self._needed = frozenset(_open_descriptors())
        for name in ("close", "closerange"):
            setattr(os, name, self._told_first(name, getattr(os, name)))

        def tell_and_leave(status: int) -> NoReturn:
            self._tell("os._exit", _frames(sys._getframe(1)))
            leave(status)

        os._exit = tell_and_leave

    def end(self) -> None:
        """Tell no more of what is closed."""
        self._is_over = True

    def _told_first(self, name: str, close: Any) -> Any:
        def tell_and_close(descriptor: int, *more: int) -> None:
            closed = range(descriptor, more[0] if more else descriptor + 1)
            if not self._is_over and not self._needed.isdisjoint(closed):
                self._tell(f"os.{name}", _frames(sys._getframe(1)))
            close(descriptor, *more)

        return tell_and_close


def _open_descriptors() -> Iterator[int]:
    """What is open now: standard streams, and pytest's own copies of them."""
    try:
        found = [int(path.name) for path in _STREAMS.iterdir()]
    except (OSError, ValueError):
        found = list(range(_MOST))
    for descriptor in found:
        with contextlib.suppress(OSError):
            os.fstat(descriptor)
            yield descriptor


def _frames(frame: FrameType | None) -> Frames:
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_stack(frame)]
    return frames[::-1]
