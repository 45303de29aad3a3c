"""One run of pytest that ends this process: the whole of a cold run, and of a warm runner's child.

Its arguments are the plugins, by module, and one JSON object: arguments,
and cache, the folder for bytecode of what is imported from now on, null for none.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import NoReturn

SETTINGS = "COURSE_WITNESS"
_CRASHED = 70
leave = os._exit  # its own: learner code, and the witness that watches for it, put others in its place


def run_pytest(
    plugins: Sequence[str], arguments: Sequence[str], cache: str | None, more: Sequence[object] = ()
) -> NoReturn:
    """Run pytest, with `more` plugins that are objects already, and end the process with its status."""
    status = _CRASHED
    try:
        import pytest

        # As objects: named by -p they would be rewritten anew, or warn that they were imported before.
        modules = [importlib.import_module(name) for name in plugins]
        sys.pycache_prefix = cache
        sys.dont_write_bytecode = cache is None
        sys.argv = ["pytest", *arguments]
        status = int(pytest.main(list(arguments), plugins=[*modules, *more]))
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - the engine reads why the run ended
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            _wait_for_leftovers()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        leave(status)


def _wait_for_leftovers() -> None:
    """Do what an interpreter does at its end: wait for threads, call what was registered for the exit.

    Both are CPython's own; without them a thread that never ends would pass here and hang plain pytest.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


if __name__ == "__main__":
    *_plugins, _request = sys.argv[1:]
    run_pytest(_plugins, **json.loads(_request))
