"""The closing lines of plain `pytest` in a practice, counted against the manifest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path("src", "findex", "index.py")
FOCUS = Path("tests", "test_02_search.py")
RED1 = "Lab 02.1 ranking 尚未实现"
RED2 = "Lab 02.2 phrases 尚未实现"
FIRST = f"Lab 02.1 0/2 · first red: {RED1}"
CHAPTER_01 = ["Lab 01.1 2/2", "Lab 01.2 2/2", "Chapter 01 4/4"]
# Only the plugin that the tests need: the others cost more than the run.
LEAN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_asyncio.plugin"}


# Imports pytest once and forks for every run, each in a directory of its own: a quarter of the time.
SERVER = """
import json, os, sys
import pytest, pytest_asyncio.plugin

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(job["folder"])
        status = pytest.main(job["arguments"], plugins=[pytest_asyncio.plugin])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def server():
    """A process that runs pytest on demand."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        text=True,
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def closing(practice, server, tmp_path):
    """The lines that a run of plain pytest closes with, after its own summary, and its status."""

    def run(*arguments):
        job = {"folder": str(practice), "arguments": arguments, "output": str(tmp_path / "output")}
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return status, after_summary((tmp_path / "output").read_text("utf-8"))

    return run


def after_summary(output: str) -> list[str]:
    lines = output.rstrip("\n").split("\n")
    return lines[len(lines) - lines[::-1].index("") :] if "" in lines else []


def edit(practice: Path, file: Path, old: str, new: str) -> None:
    text = (practice / file).read_text("utf-8")
    assert old in text
    (practice / file).write_text(text.replace(old, new), "utf-8")


def test_first_red_closes_the_run_of_a_lab(practice, tests_in):
    """`pytest -m lab02_1`, all plugins loaded: `2 failed`, each the scaffold's error, then the lab's line, last."""
    ran = tests_in(practice, "-m", "lab02_1")
    assert ran.status == 1
    lines = ran.out.rstrip("\n").split("\n")
    assert lines[-2:] == ["", FIRST]
    assert re.search(r"=+ 2 failed, \d+ deselected in .* =+", lines[-3])
    assert ran.out.count(f"E       NotImplementedError: {RED1}") == 2


def test_chapter_closes_with_a_line_for_each_lab_and_its_sum(closing):
    """`pytest -m lab02` shows every lab of the chapter, then the chapter; each red is that lab's own first."""
    assert closing("-m", "lab02") == (
        1,
        [FIRST, f"Lab 02.2 0/1 · first red: {RED2}", f"Lab 02.3 0/1 · first red: {RED1}", "Chapter 02 0/4"],
    )


def test_plain_pytest_closes_with_every_chapter(closing):
    """Plain `pytest` runs everything: the labs of earlier chapters too, and the extra tests after the count."""
    status, lines = closing()
    assert status == 1
    assert lines[:3] == CHAPTER_01
    assert lines[3:6] == [FIRST, f"Lab 02.2 0/1 · first red: {RED2}", f"Lab 02.3 0/1 · first red: {RED1}"]
    assert re.fullmatch(r"Chapter 02 0/4 · \d+ extra ★", lines[6])
    assert len(lines) == 7


def test_solved_labs_close_green(closing, practice, done):
    """As labs are done their lines turn to 2/2; what is still open shows its own red; then the chapter is 4/4."""
    done(practice, "02.1")
    assert closing("-m", "lab02_1") == (0, ["Lab 02.1 2/2"])
    done(practice, "02.2")
    _, lines = closing("-m", "lab02")
    assert lines == [
        "Lab 02.1 2/2",
        "Lab 02.2 1/1",
        "Lab 02.3 0/1 · first red: Lab 02.3 quoted queries 尚未实现",
        "Chapter 02 3/4",
    ]
    done(practice, "02.3")
    status, lines = closing()
    assert (status, lines[:-1]) == (0, [*CHAPTER_01, "Lab 02.1 2/2", "Lab 02.2 1/1", "Lab 02.3 1/1"])
    assert re.fullmatch(r"Chapter 02 4/4 · [1-9]\d* extra ★", lines[-1])


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param(["-k", "tokenize"], ["Lab 01.1 2/2"], id="name"),
        pytest.param(["-k", "search_scores"], [FIRST], id="name of one of two"),
        pytest.param([f"{FOCUS}::test_search_limit"], [FIRST], id="one test"),
        pytest.param(["tests/test_01_index.py"], CHAPTER_01, id="file"),
        pytest.param(["-m", "lab02_1 or lab01_2"], ["Lab 01.2 2/2", FIRST], id="two labs"),
        pytest.param(
            ["-m", "lab02 and not lab02_3"], [FIRST, f"Lab 02.2 0/1 · first red: {RED2}"], id="expression"
        ),
        pytest.param(["-m", "extra01"], [], id="extra"),
        pytest.param(["-m", "lab02_1", "-x", "--tb=no", "-q", "-q"], [FIRST], id="quiet, stops at the first"),
    ],
)
def test_lines_are_those_that_were_asked_for(arguments, lines, closing):
    """A line for each lab that the run's arguments choose, and for no other."""
    _, shown = closing(*arguments)
    assert shown == lines or (not lines and not any(line.startswith(("Lab", "Chapter")) for line in shown))


@pytest.mark.parametrize(
    "arguments",
    [["--markers"], ["--version"], ["--collect-only", "-q"], ["-m", "nonsense"], ["tests/none.py"]],
)
def test_what_runs_no_tests_closes_with_nothing(arguments, practice, tests_in):
    """Where nothing was to be run, or what was asked for doesn't exist, no lab is counted."""
    ran = tests_in(practice, *arguments, env=LEAN)
    assert not re.search(r"^(Lab|Chapter) \d\d", ran.out, re.MULTILINE)


def test_missing_test_file_counts_as_nothing_passed(closing, practice):
    """Where a lab's test file is gone the count is still the manifest's: 0/2."""
    (practice / FOCUS).unlink()
    assert closing("-m", "lab02_1") == (5, ["Lab 02.1 0/2"])
    assert closing("-m", "lab02_1 or lab01_1") == (0, ["Lab 01.1 2/2", "Lab 02.1 0/2"])


def test_removed_test_counts_as_not_passed(closing, practice, done):
    """A test that was deleted is missing from the count: nobody gets 2/2 by removing one."""
    done(practice, "02.1")
    edit(practice, FOCUS, "def test_search_limit", "def search_limit")
    assert closing("-m", "lab02_1") == (0, ["Lab 02.1 1/2"])


def test_skipped_test_does_not_count(closing, practice, done):
    """A skipped or expected-to-fail test is not passed."""
    done(practice, "02.2")
    edit(
        practice, FOCUS, "@pytest.mark.lab02_2\n", '@pytest.mark.lab02_2\n@pytest.mark.skip(reason="later")\n'
    )
    edit(
        practice,
        FOCUS,
        "def test_search_limit() -> None:\n",
        "def test_search_limit() -> None:\n    pytest.skip()\n",
    )
    assert closing("-m", "lab02_1 or lab02_2") == (0, ["Lab 02.1 1/2", "Lab 02.2 0/1"])


@pytest.mark.parametrize(
    ("line", "red"),
    [
        ("def f(:", "SyntaxError: invalid syntax"),
        ("undefined", "NameError: name 'undefined' is not defined"),
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_teaching_module_that_can_not_be_imported_is_the_red(line, red, closing, practice):
    """An error while the teaching module is imported is the lab's first red: 0/2, never an empty run."""
    with (practice / FILE).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    status, lines = closing("-m", "lab02_1")
    assert status != 0
    assert lines == [f"Lab 02.1 0/2 · first red: {red}"]


def test_broken_file_of_the_learners_own_stops_no_lab(closing, practice, done):
    """Another file that can't be collected stops no lab whose own tests could be, and is not its red."""
    done(practice, "02.1")
    (practice / "tests" / "test_mine.py").write_text("import nowhere_to_be_found\n", "utf-8")
    edit(
        practice, FOCUS, "@pytest.mark.lab02_2\n", '@pytest.mark.lab02_2\n@pytest.mark.skip(reason="later")\n'
    )
    status, lines = closing("-m", "lab02_1 or lab02_2")
    assert (status, lines) == (1, ["Lab 02.1 2/2", "Lab 02.2 0/1"])


def test_exceptions_of_any_kind_are_told_in_one_line(closing, practice):
    """A red is the exception's type and the first line of its text, where it has one and can say it."""
    cases = {
        'raise ValueError("first\\nsecond")': "ValueError: first",
        "raise KeyError": "KeyError",
        "raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})": "Odd",
        "raise SystemExit('bye')": "SystemExit: bye",
    }
    original = (practice / FILE).read_text("utf-8")
    for line, red in cases.items():
        (practice / FILE).write_text(original, "utf-8")
        edit(practice, FILE, f'raise NotImplementedError("{RED1}")', line)
        assert closing("-m", "lab02_1", "--tb=no") == (1, [f"Lab 02.1 0/2 · first red: {red}"]), line


def test_parametrized_test_counts_once(closing, practice, done):
    """A test with parameters is one test, green only where every parameter is."""
    done(practice, "02.2")
    edit(
        practice,
        FOCUS,
        "@pytest.mark.lab02_2\ndef test_phrase_words_follow() -> None:\n",
        '@pytest.mark.lab02_2\n@pytest.mark.parametrize("n", [1, 2, 3])\ndef test_phrase_words_follow(n) -> None:\n',
    )
    assert closing("-m", "lab02_2") == (0, ["Lab 02.2 1/1"])
    edit(
        practice,
        FOCUS,
        "def test_phrase_words_follow(n) -> None:\n",
        'def test_phrase_words_follow(n) -> None:\n    assert n != 2, "two"\n',
    )
    _, lines = closing("-m", "lab02_2")
    assert [line.partition("\\n")[0] for line in lines] == ["Lab 02.2 0/1 · first red: AssertionError: two"]


def test_red_in_setup_or_teardown_is_red(closing, practice, done):
    """A test whose fixture fails is not passed, before the call or after it."""
    done(practice, "02.2")
    fixture = "\n\n@pytest.fixture(autouse=True)\ndef after():\n    yield\n    raise OSError('after')\n"
    with (practice / FOCUS).open("a", encoding="utf-8") as file:
        file.write(fixture)
    assert closing("-m", "lab02_2", "--tb=no") == (1, ["Lab 02.2 0/1 · first red: OSError: after"])


def test_run_over_several_workers_counts_the_same(practice, tests_in):
    """With pytest-xdist the lines are the same."""
    pytest.importorskip("xdist")
    env = {**LEAN, "PYTEST_PLUGINS": "pytest_asyncio.plugin,xdist.plugin"}
    ran = tests_in(practice, "-n", "1", "-m", "lab02_1", "--tb=no", env=env)
    assert (ran.status, after_summary(ran.out)) == (1, [FIRST])


@pytest.mark.parametrize(("encoding", "dot"), [("cp1252", "·"), ("ascii", "-")])
def test_output_that_can_not_encode_gets_plain_signs(encoding, dot, practice, program, tests_in):
    """Where the output can't encode a sign, the line is there all the same."""
    env = {**os.environ, **LEAN, "PYTHONIOENCODING": encoding}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "lab02_1", "--tb=no"],
        cwd=practice,
        env=env,
        capture_output=True,
        check=False,
    )
    last = ran.stdout.decode(encoding).rstrip().splitlines()[-1]
    red = RED1.encode("ascii", "backslashreplace").decode()
    assert (ran.returncode, last) == (1, f"Lab 02.1 0/2 {dot} first red: {red}")


def test_extra_tests_alone_close_with_their_count(closing, practice, done):
    """`-m extra02` is no lab's count, but it is one."""
    done(practice, "02.3")
    assert closing("-m", "extra02") == (0, ["Chapter 02 1/1 extra ★"])
