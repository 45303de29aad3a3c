"""`course demo`: the running example, on the learner's code or on the reference, its output as it comes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILE = "src/findex/index.py"
TRACE = 'red fish → pond 3, lake 2\n"red fish" → pond 3\n'


@pytest.fixture
def demo_course(tiny):
    """Give the tiny course's chapter 02 another demo."""

    def write(text: str) -> Path:
        (tiny / "labs/02/demo.py").write_text(text, "utf-8")
        return tiny

    return write


def test_reference_plays_outside_of_a_practice(call, tiny_folder, tmp_path):
    """Elsewhere the demo runs on the reference; whose code it is goes to standard error."""
    answer = call("--course", tiny_folder, "demo", "2", cwd=tmp_path)
    assert (answer.status, answer.out) == (0, TRACE)
    assert answer.told == ["Chapter 02 · the demo, played on the reference"]
    assert list(tmp_path.iterdir()) == []


def test_learners_code_plays_in_a_practice(practice, call, done):
    """In a practice it runs on the learner's code, as far as that is built."""
    unfinished = call("demo", "02", cwd=practice)
    done(practice, "02.3")
    finished = call("demo", "02", cwd=practice)
    assert (unfinished.status, unfinished.out) == (0, "The trace ends here: Lab 02.1 ranking 尚未实现\n")
    assert (finished.status, finished.out) == (0, TRACE)
    assert finished.told == ["Chapter 02 · the demo, played on your code"]


def test_later_chapter_plays_on_the_reference(tiny, call, tmp_path):
    """A practice that has not come to chapter N yet has no code for it."""
    assert call("--course", tiny, "practice", "01", tmp_path / "w").status == 0
    answer = call("demo", "02", cwd=tmp_path / "w")
    assert (answer.status, answer.out) == (0, TRACE)
    assert answer.told == ["Chapter 02 · the demo, played on the reference"]


def test_failure_is_one_sentence_with_file_and_line(practice, call, done):
    """A failing demo is status 1 and names the learner's line; the traceback comes with -v only."""
    done(practice, "02.3")
    file = practice / FILE
    text = file.read_text("utf-8").replace("[:limit]", "[limit]")
    file.write_text(text, "utf-8")
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "[limit]" in one)
    sentence = (
        "course: The demo of chapter 02 failed on your code: "
        f"IndexError: list index out of range, at {FILE}:{line}."
    )
    short = call("demo", "02", cwd=practice)
    assert (short.status, short.out, short.told[1:]) == (1, "", [sentence])
    long = call("-v", "demo", "02", cwd=practice)
    assert long.told[1] == "Traceback (most recent call last):"
    assert long.told[-1] == sentence
    assert "player.py" not in long.err
    assert "runpy" not in long.err


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os._exit(3)", "it ended with status 3"),
        ("import sys; sys.exit('bye')", "it ended with status 1"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9 ended it"),
        ("x = (", f"SyntaxError: '(' was never closed (index.py, line 1), at {FILE}:1"),
        ("raise KeyboardInterrupt", f"KeyboardInterrupt, at {FILE}:1"),
        ("class E(Exception):\n def __str__(self): 1/0\nraise E", f"E, at {FILE}:3"),
    ],
)
def test_whatever_ends_the_demo_is_one_sentence(practice, call, code, reason):
    """Exits, signals and odd exceptions of learner code are status 1 too."""
    (practice / FILE).write_text(code, "utf-8")
    answer = call("demo", "02", cwd=practice)
    assert answer.status == 1
    assert answer.told[-1] == f"course: The demo of chapter 02 failed on your code: {reason}."


def test_missing_package_is_broken(practice, call):
    """A tree whose package is not its own proves nothing: status 3."""
    (practice / "src/findex").rename(practice / "src/gone")
    answer = call("demo", "02", cwd=practice)
    assert (answer.status, answer.out) == (3, "")
    assert answer.told[-2].startswith("course: The findex that was imported is not this tree's own")


def test_foreign_python_path_serves_nothing(practice, course, done, tmp_path):
    """Another copy of the package on PYTHONPATH, or in the current directory, is not played."""
    done(practice, "02.3")
    for folder in (tmp_path / "foreign", tmp_path / "here"):
        (folder / "findex").mkdir(parents=True)
        (folder / "findex/__init__.py").write_text("raise SystemExit('foreign')")
    env = {"PYTHONPATH": str(tmp_path / "foreign"), "PYTHONSTARTUP": "x"}
    answer = course("demo", "02", cwd=practice, env=env)
    assert (answer.status, answer.out) == (0, TRACE)


def test_chapter_without_a_demo_names_those_that_have_one(call, tiny_folder):
    """What can't be played is wrong use."""
    answer = call("--course", tiny_folder, "demo", "01", cwd="/")
    assert (answer.status, answer.told) == (
        2,
        ["course: Chapter 01 has no demo.", "Those that have one: 02."],
    )


@pytest.mark.parametrize("separator", [[], ["--"]])
def test_arguments_reach_the_demo_and_paths_are_the_users(demo_course, course, tmp_path, separator):
    """Options that are not the command's own are the demo's; relative paths are seen from the user."""
    tiny = demo_course(
        "import pathlib, sys\nprint(sys.argv[1:])\npathlib.Path(sys.argv[2]).write_text('kept')\n"
    )
    here = tmp_path / "elsewhere"
    here.mkdir()
    command = ["--course", tiny, "demo", "02", *separator, "--session", "note.txt", "-x", "--long=1"]
    answer = course(*command, cwd=here)
    assert (answer.status, answer.out) == (0, "['--session', 'note.txt', '-x', '--long=1']\n")
    assert (here / "note.txt").read_text() == "kept"


def test_start_directory_is_the_demos_directory(demo_course, course, tmp_path):
    """With -C relative paths are seen from there."""
    tiny = demo_course("import os\nprint(os.getcwd())\n")
    here = (tmp_path / "start").resolve()
    here.mkdir()
    answer = course("-C", here, "--course", tiny, "demo", "02", cwd="/")
    assert answer.out == f"{here}\n"


def test_output_comes_while_the_demo_runs(demo_course, tmp_path):
    """A line is there before the demo ends; the demo gets no input."""
    tiny = demo_course(
        "import pathlib, sys, time\n"
        "print('first → 1')\n"
        "while not pathlib.Path('go').exists():\n    time.sleep(0.01)\n"
        "print(repr(sys.stdin.read()), file=sys.stderr)\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-m", "course", "--course", tiny, "demo", "02"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert running.stdout is not None
    with running:
        assert running.stdout.readline().decode() == "first → 1\n"
        assert running.poll() is None
        (tmp_path / "go").touch()
        assert running.stdout.read().decode() == "''\n"
    assert running.returncode == 0


def test_interrupt_ends_the_demo_with_all_it_started(demo_course, terminal, ended, tmp_path):
    """Ctrl-C is status 130, and no process stays behind."""
    tiny = demo_course(
        "import subprocess, sys, os\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('pids', os.getpid(), child.pid)\n"
        "child.wait()\n"
    )
    child = terminal("--course", tiny, "demo", "02", cwd=tmp_path)
    child.expect(r"pids (\d+) (\d+)\r\n")
    pids = [int(child.match[1]), int(child.match[2])]
    assert ended(child, child.sendintr).status == 130
    assert [pid for pid in pids if Path(f"/proc/{pid}/status").exists() and runs(pid)] == []


def runs(pid: int) -> bool:
    """Whether a process is more than a zombie that nobody has waited for."""
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_demo_reads_sources_and_writes_no_bytecode(practice, call, done):
    """An edit within the same second and of the same size is played; nothing is written into the tree."""
    done(practice, "02.3")
    file = practice / FILE
    subprocess.run([sys.executable, "-m", "compileall", "-q", practice / "src"], check=True)
    before = sorted(path for path in practice.rglob("*") if ".git" not in path.parts)
    stamp = file.stat()
    text = file.read_text("utf-8")
    file.write_text(text.replace("-hit[1]", "+hit[1]"), "utf-8")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert file.stat().st_size == stamp.st_size
    answer = call("demo", "02", cwd=practice)
    assert answer.out.splitlines()[0] == "red fish → lake 2, pond 3"
    assert sorted(path for path in practice.rglob("*") if ".git" not in path.parts) == before
