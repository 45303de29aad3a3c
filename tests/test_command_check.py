"""`course check`: labs in order, the first deviation, and never a green that was not earned."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from course.catalog import Course
from course.labs import count_lab, lab_run, run_tests
from course.outcome import Status
from course.runner import ColdRunner, WarmRunner

pytestmark = pytest.mark.own_runs
INDEX = Path("src", "findex", "index.py")
Done = Callable[[Path, str], None]
Program = Callable[..., Any]


def append(practice: Path, text: str) -> int:
    """Add lines to the teaching file; give the number of the first of them."""
    file = practice / INDEX
    before = file.read_text("utf-8")
    file.write_text(before + text, "utf-8")
    return len(before.splitlines()) + 1


def test_starter_stops_at_the_first_lab_with_its_first_deviation(call: Program, practice: Path) -> None:
    """A starter is 0/2 at its first lab, and what should hold is the test's own sentence."""
    ran = call("check", cwd=practice)
    assert ran.status == 1
    assert "Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现" in ran.out
    assert "should hold  Every occurrence of every word counts" in ran.out
    assert "look at      src/findex/index.py:" in ran.out
    assert "Lab 02.2" not in ran.out


def test_stage_goes_on_to_the_next_lab(call: Program, practice: Path, done: Done) -> None:
    """With a lab done, its line is green and the next one is the first red."""
    done(practice, "02.1")
    ran = call("check", cwd=practice)
    assert ran.status == 1
    assert ran.out.splitlines()[0] == "Lab 02.1 2/2"
    assert "Lab 02.2 0/1 · first red: Lab 02.2 phrases 尚未实现" in ran.out


def test_all_done_is_green(call: Program, practice: Path, done: Done) -> None:
    """The whole chapter solved ends with its count and status 0."""
    done(practice, "02.3")
    ran = call("check", cwd=practice)
    assert ran.status == 0, ran.out
    assert "Chapter 02 4/4" in ran.out


def test_all_reads_on_behind_the_first_red(call: Program, practice: Path) -> None:
    """--all gives every lab's line."""
    ran = call("check", "--all", cwd=practice)
    assert [line for line in ran.out.splitlines() if line.startswith("Lab 02.3")]


def test_json_holds_what_a_tutor_needs_and_no_answer(call: Program, practice: Path) -> None:
    """The document names the current lab, its goal, its deviation and the files that may change."""
    document = call("check", "--json", cwd=practice).document
    assert document["kind"] == "check"
    assert document["current"]["lab"] == "02.1"
    assert document["current"]["goal"]
    assert document["current"]["deviation"]["file"] == INDEX.as_posix()
    assert document["may_change"] == [INDEX.as_posix()]


def test_wrong_value_shows_expected_and_actual(call: Program, practice: Path, done: Done) -> None:
    """A wrong result is told by both values, invisible characters made visible."""
    done(practice, "02.3")
    file = practice / INDEX
    text = file.read_text("utf-8")
    file.write_text(
        text.replace("return self._ranked(", "return [('a\\u200b', 1)] or self._ranked("), "utf-8"
    )
    ran = call("check", "02.1", cwd=practice)
    assert "expected     [('pond', 5), ('barn', 2), ('lake', 2)]" in ran.out
    assert "actual       [('a\\u200b', 1)]" in ran.out or "actual       [('a<U+200B>', 1)]" in ran.out


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys\nsys.exit(0)\n", "sys.exit(0) was called"),
        ("import os\nos._exit(0)\n", "os._exit() ended the run"),
        ("import os\nos.closerange(0, 64)\n", "os.closerange() closed what pytest needs"),
        ("import os\nos.closerange(3, 64)\n", "os.closerange() closed what pytest needs"),
        ("input('name? ')\n", "it reads from standard input"),
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    ],
)
def test_code_that_ends_the_import_is_red_with_its_line(
    call: Program, practice: Path, done: Done, code: str, told: str
) -> None:
    """Whatever ends an import is the learner's red: one sentence with file and line, never a green."""
    done(practice, "02.3")
    line = append(practice, code) + code.count("\n") - 1
    ran = call("check", cwd=practice)
    assert ran.status == 1, ran.out + ran.err
    assert told in ran.out
    assert f"{INDEX.as_posix()}:{line}" in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_endless_loop_at_import_is_ended_and_its_line_told(
    practice: Path, done: Done, tiny_course: Course
) -> None:
    """A loop that never ends is killed at the deadline, and the line is named."""
    done(practice, "02.3")
    line = append(practice, "while True:\n    pass\n")
    chapter = tiny_course.chapter("02")
    run = run_tests(lab_run(tiny_course, chapter, practice, chapter.manifest.lab[:1], deadline=3.0))
    outcome = count_lab(chapter.manifest.lab[0], run)
    assert run.timed_out
    assert "did not end within 3 s" in outcome.line
    assert f"{INDEX.as_posix()}:" in outcome.line
    assert run.place is not None
    assert run.place.line in (line, line + 1)


def test_broken_later_lab_does_not_stop_the_one_asked_for(call: Program, practice: Path, done: Done) -> None:
    """A test that ends the process in a later lab leaves the earlier lab's count alone."""
    done(practice, "02.1")
    file = practice / INDEX
    text = file.read_text("utf-8")
    file.write_text(
        text.replace('raise NotImplementedError("Lab 02.2', 'import os; os._exit(0)  # ("Lab 02.2'), "utf-8"
    )
    ran = call("check", cwd=practice)
    assert "Lab 02.1 2/2" in ran.out
    assert "Lab 02.2 0/1 · first red: os._exit() ended the run" in ran.out
    assert ran.status == 1


def test_foreign_package_is_broken_never_green(call: Program, practice: Path, tiny_folder: Path) -> None:
    """Where the package that was imported is not the practice's own, the run is BROKEN."""
    other = (tiny_folder / "solutions" / "02" / "src").as_posix()
    project = practice / "pyproject.toml"
    project.write_text(
        project.read_text("utf-8").replace('pythonpath = ["src"]', f'pythonpath = ["{other}"]'), "utf-8"
    )
    ran = call("check", cwd=practice)
    assert ran.status == 3
    assert "BROKEN" in ran.err
    assert "2/2" not in ran.out


def test_foreign_pythonpath_changes_nothing(
    call: Program, practice: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH and PYTEST_ADDOPTS of the user's can't lead a run to other code."""
    monkeypatch.setenv("PYTHONPATH", str(tiny_folder / "solutions" / "02" / "src"))
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    assert "Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现" in call("check", cwd=practice).out


def test_unknown_lab_is_wrong_use(call: Program, practice: Path) -> None:
    """A lab of another chapter, and one that is not there, are refused with those there are."""
    for name in ("02.9", "01.1", "nonsense"):
        ran = call("check", name, cwd=practice)
        assert ran.status == 2, name
        assert len(ran.told) == 2, ran.err


def test_outside_a_practice_is_wrong_use(call: Program, tmp_path: Path) -> None:
    """Where there is no practice, the sentence says how one is made."""
    ran = call("check", cwd=tmp_path)
    assert ran.status == 2
    assert "course practice" in ran.err


def test_every_check_leaves_evidence(call: Program, practice: Path, done: Done) -> None:
    """Each lab read is one line: lab, counts, whether the first red was exact, hash and versions."""
    call("check", cwd=practice)
    done(practice, "02.3")
    call("check", cwd=practice)
    lines = [
        json.loads(line) for line in (practice / ".course" / "evidence.jsonl").read_text("utf-8").splitlines()
    ]
    assert [(line["lab"], line["passed"], line["exact"]) for line in lines] == [
        ("02.1", 0, True),
        ("02.1", 2, False),
        ("02.2", 1, False),
        ("02.3", 1, False),
    ]
    assert lines[0]["teaching"] != lines[1]["teaching"]
    assert set(lines[0]["versions"]) == {"course", "python", "pytest"}


def test_check_writes_nothing_but_evidence(
    call: Program, practice: Path, git: Callable[..., list[str]]
) -> None:
    """The practice holds no bytecode, no cache and no example database afterwards."""
    before = {path for path in practice.rglob("*") if ".git" not in path.parts}
    call("check", cwd=practice)
    after = {path for path in practice.rglob("*") if ".git" not in path.parts}
    assert {path.relative_to(practice).as_posix() for path in after - before} == {".course/evidence.jsonl"}
    assert git(practice, "status", "--porcelain") == []


def test_edit_of_equal_size_within_a_second_is_seen(
    call: Program, practice: Path, done: Done, tests_in: Program
) -> None:
    """Bytecode that lies beside the file is never trusted, nor what an earlier check kept of another text."""
    done(practice, "02.3")
    assert tests_in(practice, "-q", "-m", "lab02_1").status == 0
    assert "Lab 02.1 2/2" in call("check", cwd=practice).out
    file = practice / INDEX
    text = file.read_text("utf-8")
    stat = file.stat()
    file.write_text(text.replace("hits, key=lambda hit: (-hit", "hits, key=lambda hit: (+hit"), "utf-8")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert "Lab 02.1 2/2" not in call("check", cwd=practice).out


def test_red_stays_red_where_the_reader_has_gone(practice: Path, tiny_folder: Path) -> None:
    """`course check | true` never ends with the status of a green."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "course", "--course", str(tiny_folder), "check"]
    try:
        ran = subprocess.run(command, cwd=practice, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert ran.returncode in (1, 128 + signal.SIGPIPE)
    assert ran.stderr == b""


def test_verdict_is_told_where_it_cannot_be_recorded(call: Program, practice: Path, done: Done) -> None:
    """Evidence that can't be written costs one note, and neither the verdict nor its status."""
    done(practice, "02.3")
    (practice / ".course" / "evidence.jsonl").mkdir()
    ran = call("check", cwd=practice)
    assert ran.status == 0, ran.err
    assert "Chapter 02 4/4" in ran.out
    assert "evidence.jsonl can't be written" in ran.err
    assert "Traceback" not in ran.err


def test_changed_tests_are_named(call: Program, practice: Path, done: Done, tiny_course: Course) -> None:
    """A verdict of tests that are not the course's own says so, and how they come back."""
    done(practice, "02.3")
    assert "not the course's own" not in call("check", cwd=practice).err
    test = practice / tiny_course.chapter("02").manifest.focus_test
    test.write_text(test.read_text("utf-8") + "\n# mine\n", "utf-8")
    ran = call("check", cwd=practice)
    assert f"tests/{test.name} is not the course's own any more" in ran.err
    assert f"git restore --source=refs/course/start -- tests/{test.name}" in ran.err


def test_exception_with_a_long_text_is_told_in_bounds(call: Program, practice: Path, done: Done) -> None:
    """A red is a line, however long the exception's text is, and names the exception's type."""
    done(practice, "02.3")
    append(practice, "\nraise LookupError('x' * 5_000_000)\n")
    ran = call("check", cwd=practice)
    line = next(line for line in ran.out.splitlines() if line.startswith("Lab 02.1"))
    assert line.startswith("Lab 02.1 0/2 · first red: LookupError: xxx")
    assert len(ran.out) < 5000


@pytest.mark.parametrize("runner", ["cold", "warm"])
def test_thread_that_never_ends_is_told(practice: Path, done: Done, tiny_course: Course, runner: str) -> None:
    """Code that would keep plain pytest from ending is red, cold and warm alike."""
    done(practice, "02.3")
    append(practice, "\nimport threading\nthreading.Thread(target=threading.Event().wait).start()\n")
    chapter = tiny_course.chapter("02")
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(WarmRunner()) if runner == "warm" else ColdRunner()
        run = run_tests(lab_run(tiny_course, chapter, practice, chapter.manifest.lab[:1], deadline=3.0), kept)
    assert count_lab(chapter.manifest.lab[0], run).status is Status.FAILED
    assert "did not end within 3 s" in run.cause


def test_what_a_test_printed_is_shown(call: Program, practice: Path, done: Done) -> None:
    """A learner who debugs by print sees it in the deviation."""
    done(practice, "02.3")
    file = practice / INDEX
    text = file.read_text("utf-8")
    file.write_text(text.replace("return self._ranked(", "return print('seen', 7) or self._ranked("), "utf-8")
    assert "printed" not in call("check", "02.1", cwd=practice).out
    file.write_text(
        text.replace("return self._ranked(", "return print('seen', 7) or [] and self._ranked("), "utf-8"
    )
    ran = call("check", "02.1", cwd=practice)
    assert "  printed      seen 7" in ran.out.splitlines()


def test_next_commands_fit_what_is_wrong(call: Program, practice: Path, done: Done) -> None:
    """A file that is gone is brought back, one that Python can't read is mended, a chapter done goes on."""
    done(practice, "02.3")
    out = call("check", cwd=practice).out
    assert "pytest -m extra02" in out
    assert "drill --try 02.2-anywhere" in out
    append(practice, "def broken(:\n")
    assert " hint " not in call("check", cwd=practice).out
    (practice / INDEX).unlink()
    assert f"reset {INDEX.as_posix()}" in call("check", cwd=practice).out


@pytest.mark.parametrize("mode", ["check", "watch"])
def test_locale_that_is_not_utf_8_is_no_matter(
    tiny_folder: Path, tiny_history: object, tmp_path: Path, program: Program, mode: str
) -> None:
    """A practice below a folder whose name the locale can't spell is judged all the same, cold and warm."""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    course = [sys.executable, "-m", "course", "--course", str(tiny_folder)]
    (tmp_path / "日本 ü").mkdir()
    made = program([*course, "practice", "02", "mywork"], cwd=tmp_path / "日本 ü", env=ascii_only)
    assert made.status == 0, made.err
    practice = tmp_path / "日本 ü" / "mywork"
    if mode == "check":
        ran = program([*course, mode], cwd=practice, env=ascii_only)
        assert (ran.status, "Lab 02.1 0/2 - first red: " in ran.out) == (1, True), ran.out + ran.err
        return
    with subprocess.Popen(
        [*course, mode],
        cwd=practice,
        env={**os.environ, **ascii_only},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as watch:
        assert watch.stdout is not None
        lines = [watch.stdout.readline() for _ in range(3)]
        watch.kill()
    assert lines[2].startswith(b"Lab 02.1 0/2 - first red: "), lines


def test_git_that_does_not_work_is_told(
    tiny_folder: Path, tiny_history: object, tmp_path: Path, program: Program
) -> None:
    """A git that starts and fails is the environment's fault: one sentence, status 3."""
    broken = tmp_path / "bin" / "git"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 7\n", "utf-8")
    broken.chmod(0o755)
    path = f"{broken.parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "course", "--course", str(tiny_folder), "practice", "02", "w"]
    ran = program(command, cwd=tmp_path, env={"PATH": path})
    assert ran.status == 3
    assert ran.told[0].startswith("course: git does not work here: "), ran.err
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("name", ["$HOME", "~", "100%", "a;b", "it's"])
def test_any_name_of_a_practice_is_checked(
    call: Program, tiny_folder: Path, tiny_history: object, tmp_path: Path, name: str
) -> None:
    """Signs that a shell or a tool would expand in a path are left as they are."""
    assert call("--course", tiny_folder, "practice", "02", f"./{name}", cwd=tmp_path).status == 0
    ran = call("check", cwd=tmp_path / name)
    assert (ran.status, ran.err) == (1, "")
    assert "Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现" in ran.out


def test_code_that_writes_everywhere_changes_no_verdict(
    practice: Path, done: Done, tiny_course: Course
) -> None:
    """What learner code writes to descriptors that are not its own reaches no verdict, and no later run."""
    done(practice, "02.3")
    append(
        practice,
        "\nimport os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'{}\\n')\n"
        "    except OSError:\n        pass\n",
    )
    chapter = tiny_course.chapter("02")
    with WarmRunner() as runner:
        runs = [
            run_tests(lab_run(tiny_course, chapter, practice, chapter.manifest.lab[:1]), runner)
            for _ in range(5)
        ]
    assert [count_lab(chapter.manifest.lab[0], run).line for run in runs] == ["Lab 02.1 2/2"] * 5


def test_kept_bytecode_stays_within_bounds(
    practice: Path, done: Done, tiny_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the code under test no more is kept than the bound, the newest; an edit is always seen."""
    monkeypatch.setattr("course.runner._MOST_KEPT", 3)
    done(practice, "02.3")
    chapter, runner = tiny_course.chapter("02"), ColdRunner()
    tests = practice / chapter.manifest.focus_test
    for number in range(3):
        append(practice, f"\nVERSION = {number}\n")
        run = run_tests(lab_run(tiny_course, chapter, practice, chapter.manifest.lab[:1]), runner)
        assert run.status is Status.PASSED
    folder = runner.bytecode([tests, *sorted(tests.parent.glob("*.py"))])
    assert folder is not None
    assert len(list((folder / "code").iterdir())) == 3
