"""What the engine's tests share: the tiny foreign course, caches, and the command, run in two ways."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from course.catalog import Course, load_course
from course.cli import run as run_command
from course.git import Git
from course.history import History, open_history

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 120


def pytest_configure(config: pytest.Config) -> None:
    """Have Ctrl-C reach the children: a shell that starts the tests in the background has it ignored."""
    config.addinivalue_line(
        "markers", "own_runs: runs are made by the runner that the command itself chooses"
    )
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    found: Any = importlib.util.spec_from_file_location("warm_runs", ROOT / "tests" / "warm_runs.py")
    plugin = importlib.util.module_from_spec(found)
    found.loader.exec_module(plugin)
    config.pluginmanager.register(plugin, "warm-runs")


@dataclass(frozen=True)
class Ran:
    """How a program ended: its exit status, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, parsed as JSON."""
        return json.loads(self.out)

    @property
    def told(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


Program = Callable[..., Ran]


def copy_tiny(folder: Path) -> Path:
    """Write a whole copy of the tiny course, the flagship's project template included."""
    shutil.copytree(ROOT / "tests" / "tiny", folder)
    template = ROOT / "starters" / "_project"
    shutil.copytree(template, folder / "starters" / "_project", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that all tests share, so that equal contents are built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def plain_environment(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own settings out, and the developer's own cache untouched."""
    for name in list(os.environ):
        if name.startswith(("COURSE_", "GIT_", "PYTHON", "PYTEST_ADDOPTS", "LC_", "LANG", "XDG_")):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("COURSE_CACHE_DIR", str(shared_cache))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    folder = tmp_path / "own cache"
    monkeypatch.setenv("COURSE_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A copy of the tiny course that a test may change."""
    return copy_tiny(tmp_path / "tiny")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tiny course that no test may change."""
    return copy_tiny(tmp_path_factory.mktemp("course") / "tiny")


@pytest.fixture(scope="session")
def tiny_course(tiny_folder: Path) -> Course:
    """The tiny course, loaded."""
    return load_course(tiny_folder)


@contextlib.contextmanager
def cache_at(folder: Path) -> Iterator[None]:
    """Have histories read from, and built in, this cache for a while."""
    before = os.environ.get("COURSE_CACHE_DIR")
    os.environ["COURSE_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COURSE_CACHE_DIR"]
        else:
            os.environ["COURSE_CACHE_DIR"] = before


@pytest.fixture(scope="session")
def tiny_history(tiny_course: Course, shared_cache: Path) -> History:
    """The tiny course's history, from the shared cache."""
    with cache_at(shared_cache):
        return open_history(tiny_course)


@pytest.fixture
def cached(shared_cache: Path) -> Callable[[Course], Path]:
    """The shared cache's entry for a course, built where it isn't there yet."""

    def find(course: Course) -> Path:
        with cache_at(shared_cache):
            return open_history(course).repository.parent

    return find


def run_program(
    arguments: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str | None] | None = None,
    **options: Any,
) -> Ran:
    """Run a program to its end; `env` changes this process's environment, None takes a variable out."""
    changed = {**os.environ, **(env or {})}
    kept = {name: value for name, value in changed.items() if value is not None}
    ended = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
        **options,
    )
    return Ran(
        ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
    )


@pytest.fixture
def program() -> Program:
    """Run any program as a child."""
    return run_program


@pytest.fixture
def course() -> Program:
    """Run `course` as a child, as a user does: `course("list", cwd=…, env=…)`."""

    def start(*arguments: str | Path, **options: Any) -> Ran:
        return run_program([sys.executable, "-m", "course", *arguments], **options)

    return start


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Program:
    """Run `course` in this process, which saves a child's start: `call("list", cwd=…)`."""

    def start(*arguments: str | Path, cwd: Path | None = None) -> Ran:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run_command([str(argument) for argument in arguments])
        return Ran(status, out.getvalue(), err.getvalue())

    return start


@pytest.fixture
def tests_in() -> Program:
    """Run plain `pytest` in a directory: `tests_in(folder, "-m", "lab02_1")`."""

    def start(folder: Path, *arguments: str, env: Mapping[str, str | None] | None = None) -> Ran:
        return run_program([sys.executable, "-m", "pytest", *arguments], cwd=folder, env=env)

    return start


@pytest.fixture
def practice(call: Program, tiny_folder: Path, tmp_path: Path) -> Path:
    """A practice of the tiny course's chapter 02, with the starter as it came."""
    folder = tmp_path / "mywork"
    made = call("--course", tiny_folder, "practice", "02", folder)
    assert made.status == 0, made.err
    return folder


@pytest.fixture
def git() -> Callable[..., list[str]]:
    """Ask git: `git(folder, "log", "--format=%H")` gives the output's lines."""

    def ask(folder: Path, *arguments: str) -> list[str]:
        return Git(folder).lines(*arguments)

    return ask


@pytest.fixture
def terminal() -> Iterator[Callable[..., Any]]:
    """Start `course` in a pseudo-terminal: `terminal("quiz", cwd=…)` gives what pexpect spawned."""
    import pexpect

    spawned = []

    def start(
        *arguments: str | Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (40, 100),
    ) -> Any:
        with warnings.catch_warnings():
            # pytest's workers have threads; the child does nothing but start another program.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = pexpect.spawn(
                sys.executable,
                ["-m", "course", *(str(argument) for argument in arguments)],
                cwd=str(cwd),
                env={**os.environ, "TERM": "dumb", **(env or {})},
                dimensions=size,
                encoding="utf-8",
                timeout=DEADLINE,
            )
        spawned.append(child)
        return child

    yield start
    for child in spawned:
        child.close(force=True)


@pytest.fixture
def ended() -> Callable[[Any], Ran]:
    """Read a pseudo-terminal to its end; give the exit status and the rest of what was shown.

    `key` is pressed first, and again while nothing comes of it, as a person does: a line editor that has just
    shown its question may miss the first.
    """

    def read(child: Any, key: Callable[[], object] | None = None) -> Ran:
        import pexpect

        for _ in range(20 if key is not None else 0):
            key()
            if child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=3) == 0:
                break
        else:
            child.expect(pexpect.EOF)
        child.wait()
        return Ran(child.exitstatus, child.before.replace("\r\n", "\n"), "")

    return read


@pytest.fixture
def done(tiny_history: History) -> Callable[[Path, str], None]:
    """Solve a practice of the tiny course up to a lab: `done(practice, "02.1")`."""

    def solve(folder: Path, lab: str) -> None:
        name = "src/findex/index.py"
        text = Git(tiny_history.repository).run("show", f"{tiny_history.stages[lab]}:{name}")
        (folder / name).write_text(text + "\n", "utf-8")

    return solve
