"""The one door to watchfiles: waiting until files of the learner's have changed.

Decision: what counts is the files' text, looked at after each notice and at least twice a second, because
editors save in many ways and some file systems tell nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_LOOK = 0.4
_NO_NOTICES = (OSError, RuntimeError, UnicodeEncodeError)
"""The last one for names that are no Unicode, which watchfiles can't be told."""


def changes(
    folders: Sequence[Path], state: Callable[[], str], known: str, stop: threading.Event
) -> Iterator[str]:
    """Yield the state each time it differs from the last one, first from `known`, until `stop` is set."""
    for _ in _notices(folders, stop):
        now = state()
        if now != known:
            known = now
            yield now


def _notices(folders: Sequence[Path], stop: threading.Event) -> Iterator[None]:
    """Something may have changed: at each notice, and every so often without one."""
    from watchfiles import watch

    while not stop.is_set():
        try:
            for _ in watch(
                *folders,
                debounce=40,
                step=20,
                rust_timeout=int(_LOOK * 1000),
                yield_on_timeout=True,
                stop_event=stop,
                raise_interrupt=True,
            ):
                yield
        except _NO_NOTICES:
            time.sleep(_LOOK)
            yield


def notices_work(folder: Path) -> bool:
    """Whether the system can tell of changes in a folder; where not, it is looked at again and again."""
    from watchfiles import watch

    stop = threading.Event()
    stop.set()
    try:
        for _ in watch(folder, stop_event=stop, rust_timeout=10, yield_on_timeout=True):
            break
    except _NO_NOTICES:
        return False
    return True
