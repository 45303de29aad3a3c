"""How commands end before their time: by a signal, by a kill, and what is left of them then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from course.leftovers import partial_name, temporary_folder, temporary_place

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
Done = Callable[[Path, str], None]
INDEX = Path("src", "findex", "index.py")


def until(condition: Callable[[], object], seconds: float = 60.0) -> bool:
    """Wait for a condition, in bounds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


@contextmanager
def looping(
    practice: Path, command: Sequence[str], temporary: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command that runs code which loops for ever once it has told its own process id."""
    told = temporary / "loop.pid"
    text = f"\nimport os, pathlib\npathlib.Path({str(told)!r}).write_text(str(os.getpid()))\nwhile True:\n    pass\n"
    (practice / INDEX).write_text((practice / INDEX).read_text("utf-8") + text, "utf-8")
    env = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        command, cwd=practice, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        assert until(lambda: told.is_file() and told.read_text("utf-8").isdecimal())
        yield process, int(told.read_text("utf-8"))
    finally:
        process.kill()
        process.communicate()


def runs(pid: int) -> bool:
    """Whether a process is there, zombies aside."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.is_file() or state.read_text("utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signal_ends_the_run_too(
    practice: Path, tiny_folder: Path, tmp_path: Path, done: Done, name: str
) -> None:
    """A command that is told to end takes the learner's endless loop and its own temporary files with it."""
    done(practice, "02.3")
    number = getattr(signal, name)
    command = [sys.executable, "-m", "course", "--course", str(tiny_folder), "check"]
    with looping(practice, command, tmp_path) as (process, loop):
        process.send_signal(number)
        assert process.wait(timeout=20) == (130 if name == "SIGINT" else 128 + number)
        assert until(lambda: not runs(loop), 10)
        assert b"Traceback" not in process.stderr.read()
    assert [path.name for path in tmp_path.iterdir() if "course-partial" in path.name] == []


def test_next_command_sweeps_what_a_killed_one_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Temporary folders of dead processes go with the next use; those of living ones, and other files, stay."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr("course.leftovers._swept", set())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine = partial_name("run").removeprefix(".")
    dead = tmp_path / (mine.replace(f"-{os.getpid()}-", f"-{ended.pid}-") + "0a")
    alive = tmp_path / (mine.replace(f"-{os.getpid()}-", f"-{os.getppid()}-") + "0b")
    for folder in (dead, alive, tmp_path / "course-run-other"):
        folder.mkdir()
        (folder / "report.jsonl").touch()
    with temporary_folder("run") as folder:
        assert folder.stat().st_mode & 0o077 == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            (alive.name, "course-run-other", folder.name)
        )
    assert not folder.exists()


@pytest.mark.parametrize(
    ("free", "flags", "mode", "variable", "fit"),
    [
        (1 << 31, 0, 0o1777, "", True),
        (1 << 31, 0, 0o1777, "TMPDIR", False),
        (1 << 31, 0, 0o1777, "TMP", False),
        (1 << 29, 0, 0o1777, "", False),
        (1 << 31, getattr(os, "ST_NOEXEC", 8), 0o1777, "", False),
        (1 << 31, getattr(os, "ST_RDONLY", 1), 0o1777, "", False),
        (1 << 31, 0, 0o777, "", False),
    ],
)
def test_temporary_folders_are_in_memory_where_that_is_fit(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    free: int,
    flags: int,
    mode: int,
    variable: str,
    fit: bool,
) -> None:
    """Where there is room, scripts may run, everybody may write, and nobody asked for another place."""
    memory, other = tmp_path / "memory", tmp_path / "other"
    memory.mkdir()
    memory.chmod(mode)
    other.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(other))
    told = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_flag=flags)
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    monkeypatch.setattr("course.leftovers._MEMORY", memory)
    monkeypatch.setattr(os, "statvfs", lambda _: told)
    with temporary_folder("place") as folder:
        assert folder.parent == (memory if fit else other)
    monkeypatch.setattr("course.leftovers._MEMORY", tmp_path / "missing")
    assert temporary_place() == other


def test_run_ends_by_itself_where_its_engine_was_killed(
    practice: Path, tiny_folder: Path, tmp_path: Path, done: Done
) -> None:
    """After a SIGKILL of the engine an endless loop ends soon after its deadline, though nobody ends it."""
    done(practice, "02.3")
    code = (
        "import sys; from pathlib import Path; from course.catalog import load_course; "
        "from course.labs import lab_run, run_tests; course = load_course(Path(sys.argv[1])); "
        "chapter = course.chapter('02'); "
        "run_tests(lab_run(course, chapter, Path.cwd(), chapter.manifest.lab[:1], deadline=2.0))"
    )
    command = [sys.executable, "-c", code, str(tiny_folder)]
    with looping(practice, command, tmp_path) as (process, loop):
        process.kill()
        process.wait()
        assert runs(loop)
        assert until(lambda: not runs(loop), 30)
