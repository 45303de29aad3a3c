"""The warm runner's server: one thread, pytest and its plugins loaded, a forked child for each run.

Its arguments are the plugins, by module. It reads one JSON request a line on standard input, answers each
with one JSON line (status, timed_out, seconds) and ends with its input; `forked` says what is in a request.
Runs that are like an earlier one are forked from a template. Decision: a process of its own, because a fork
is only safe where nothing started a thread.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from course.inside.forked import Conversation, detach, enter, finish, freeze, preload
from course.inside.pytestrun import run_pytest
from course.inside.template import Templates

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
    freeze()


def serve() -> None:
    """Answer requests until the input ends."""
    conversation = Conversation(os.fdopen(os.dup(0), "rb"), os.dup(1))
    plugins = sys.argv[1:]
    preload(["pytest", *plugins])
    rehearse(plugins)
    conversation.answer({"ready": os.getpid()})
    templates = Templates(plugins, conversation)
    for line in iter(conversation.next, b""):
        request = json.loads(line)
        preload(request["libraries"])
        answer = templates.run(line, request)
        if answer is None:
            begun = time.monotonic()
            pid = os.fork()
            if pid == 0:
                templates.close()
                _run_whole(plugins, request, conversation)
            answer = finish(pid, request, conversation, begun)
        conversation.answer(answer)
    templates.end()


def _run_whole(plugins: list[str], request: dict[str, Any], conversation: Conversation) -> NoReturn:
    """In a forked child: go through all of pytest."""
    kind = request["template"]
    detach(request, conversation)
    os.environ.clear()
    os.environ.update(kind["env"])
    enter(request)
    run_pytest(plugins, kind["arguments"], kind["cache"])


if __name__ == "__main__":
    serve()
