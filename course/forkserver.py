"""The warm runner's server: one thread, pytest and its plugins loaded, a forked child for each run.

Its arguments are the plugins, by module; it imports nothing of the engine but course.pytestrun. It reads one
JSON request a line on standard input (arguments, cwd, env, out, err, deadline, preload, cache), answers each
with one JSON line (status, timed_out, seconds) and ends with its input. Decision: a process of its own,
because a fork is only safe where nothing started a thread.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from course.pytestrun import run_pytest

_POLL = 0.002
_REHEARSAL = {
    "pyproject.toml": """
[tool.pytest.ini_options]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
markers = ["rehearsal"]
""",
    "test_rehearsal.py": """
import asyncio
import pytest

@pytest.mark.rehearsal
@pytest.mark.parametrize("number", [1, 2])
def test_plain(number, tmp_path):
    with pytest.raises(ValueError, match="no"):
        raise ValueError("no")
    assert [number] == [1], "red the second time"

async def test_asynchronous():
    await asyncio.sleep(0)
""",
}


def preload(names: list[str]) -> None:
    """Import modules that runs need, so that children have them; what fails is left to them."""
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if missing:
        # A child's collector then passes over all that was here before the fork, and shares its pages.
        gc.collect()
        gc.freeze()


def rehearse(plugins: list[str]) -> None:
    """Run pytest once here, on tests of no matter: what a first run fetches and compiles, later ones have.

    In the current directory, which is the runner's own and goes with it.
    """
    import pytest

    path, modules = sys.path[:], set(sys.modules)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    folder = Path.cwd() / "rehearsal"
    folder.mkdir()
    for name, text in _REHEARSAL.items():
        (folder / name).write_text(text, "utf-8")
    arguments = ["-q", "--tb=no", "-p", "no:cacheprovider", "-c", str(folder / "pyproject.toml")]
    objects = [importlib.import_module(name) for name in plugins]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*arguments, f"--basetemp={folder / 'tmp'}", str(folder)], plugins=objects)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("test_rehearsal"):
            del sys.modules[name]
    gc.collect()
    gc.freeze()


def serve() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    preload(["pytest", *sys.argv[1:]])
    rehearse(sys.argv[1:])
    print(json.dumps({"ready": os.getpid()}), file=answers, flush=True)
    for line in iter(sys.stdin.buffer.readline, b""):
        request = json.loads(line)
        preload(request["preload"])
        answer = run_forked(request, answers.fileno())
        print(json.dumps(answer), file=answers, flush=True)


def run_forked(request: dict[str, Any], answers: int) -> dict[str, Any]:
    """Run pytest in a forked child, in a session of its own, and kill it whole at its deadline."""
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(answers)
        _run_child(request)
    status, timed_out = _wait(pid, begun + request["deadline"])
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return {"status": status, "timed_out": timed_out, "seconds": time.monotonic() - begun}


def _wait(pid: int, end: float) -> tuple[int, bool]:
    """The child's status; killed where the deadline comes, or where nobody waits for the answer any more."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), False
        late = time.monotonic() >= end
        if late or _input_ended():
            _kill(pid)
            _, status = os.waitpid(pid, 0)
            if not late:
                sys.exit(0)
            return os.waitstatus_to_exitcode(status), True
        time.sleep(_POLL)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _input_ended() -> bool:
    """Whether the engine is gone: while a run is on it sends nothing, so that readable input is its end."""
    return bool(select.select([0], [], [], 0)[0])


def _run_child(request: dict[str, Any]) -> NoReturn:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    run_pytest(sys.argv[1:], request["arguments"], request["cache"])


if __name__ == "__main__":
    serve()
