"""Single keys from a terminal, without Enter; the terminal is given back as it was."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def single_keys() -> Iterator[Callable[[float], str]]:
    """Give a function that waits up to some seconds for a key and returns it, or "" for none.

    Where standard input is no terminal there are no keys, and the function only waits.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        yield _wait
    elif os.name == "nt":
        yield _windows_key
    else:
        with _unbuffered():
            yield _posix_key


def _wait(seconds: float) -> str:
    import time

    time.sleep(seconds)
    return ""


@contextlib.contextmanager
def _unbuffered() -> Iterator[None]:
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _posix_key(seconds: float) -> str:
    import select

    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return ""
    data = os.read(sys.stdin.fileno(), 1)
    return data.decode("ascii", "ignore") if data else "q"


def _windows_key(seconds: float) -> str:
    import msvcrt
    import time

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if msvcrt.kbhit():  # type: ignore[attr-defined, unused-ignore]
            return str(msvcrt.getwch())  # type: ignore[attr-defined, unused-ignore]
        time.sleep(0.02)
    return ""
