"""The claims about a chapter's texts: handouts, their commands, hints, quiz, acceptance lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EN, ZH = "labs/02/handout.en.md", "labs/02/handout.zh.md"
AGREE = "the handouts agree"
COMMANDS = "every command of the handout runs"
HINTS = "hints hold no answer"
QUIZ = "every quiz answer"
ACCEPTANCE = "acceptance lines"
LAB = "labs/02/lab.toml"

DIFFERENCES = {
    "heading level": ((ZH, "## Lab 02.2", "### Lab 02.2"), "heading levels differ between en and zh: '##' against '###'"),
    "heading gone": ((ZH, "## Lab 02.3 ·", "Lab 02.3 ·"), "heading levels differ between en and zh: 4 against 3"),
    "command": ((ZH, "pytest -m extra02", "pytest -m lab02 -q"), "command blocks differ between en and zh: 'pytest -m lab02_3\\npytest -m lab02\\npytest -m extra02' against 'pytest -m lab02_3\\npytest -m lab02\\npytest -m lab02 -q'"),
    "kind of block": ((ZH, "```bash\npytest -m lab02_2", "```text\npytest -m lab02_2"), "command blocks differ between en and zh: 'pytest -m lab02_2' against 'pytest -m lab02_3"),
    "block more": ((ZH, "```bash\npytest -m lab02_2", "```text\nx\n```\n```bash\npytest -m lab02_2"), "kinds of blocks differ between en and zh: 'bash' against 'text'"),
    "count": ((ZH, "Lab 02.2 1/1", "Lab 02.2 1/2"), "counts differ between en and zh: '1/1' against '1/2'"),
    "labs in another order": ((ZH, "## Lab 02.2", "## Lab 02.9"), "labs in headings differ between en and zh: '02.2' against '02.9'"),
    "dead link": ((EN, "Chapter 01 grows", "[Chapter 01](../01/handout.de.md#words) grows"), "handout.en.md links to ../01/handout.de.md#words, which is not there"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENCES)
def test_handouts_that_do_not_agree(case, gate):
    """Heading levels, command blocks, kinds of blocks, counts and labs are the same in both; links lead somewhere."""
    (name, old, new), told = DIFFERENCES[case]
    gate.change(name, (old, new))
    assert gate.false("02", AGREE).startswith(told)
    gate.true("01", AGREE)
    gate.true("02", "starter holds no answer")


def test_links_that_lead_somewhere(gate):
    """Links to files beside, to the web, to a heading, and what only looks like one in code are all fine."""
    for name in (EN, ZH):
        text = (gate.folder / name).read_text("utf-8")
        links = "[a](../01/handout.en.md#x) [b](https://example.org) [c](#lab) [d](lab.toml)\n"
        gate.write(name, f"{text}\n{links}```text\n[e](nowhere.md)\n```\n")
    gate.true("02", AGREE)


MISSING = {
    "lab": (("## Lab 02.2", "## Phrases"), "handout.en.md has no heading for Lab 02.2"),
    "count": ((" 1/1", ""), "handout.en.md does not give Lab 02.2 with 1/1"),
    "command": (("pytest -m lab02_2\n", "pytest\n"), "handout.en.md does not say `pytest -m lab02_2`"),
}


@pytest.mark.parametrize("case", MISSING)
def test_handouts_that_leave_a_lab_out(case, gate):
    """Each lab has its heading, its count and its command in the handout, however well the languages agree."""
    change, told = MISSING[case]
    for name in (EN, ZH):
        gate.change(name, change)
    assert gate.false("02", AGREE) == told


def test_handout_that_is_missing(gate):
    """There is a handout in every language."""
    (gate.folder / ZH).unlink()
    assert gate.false("02", AGREE) == "labs/02/handout.zh.md is missing"
    (gate.folder / EN).unlink()
    assert gate.false("02", COMMANDS) == "labs/02/handout.en.md is missing"


def blocks(gate, *texts: str, number: str = "01") -> None:
    """Give the handout of a chapter these blocks and no others."""
    gate.write(f"labs/{number}/handout.en.md", "# A chapter\n" + "\n".join(texts))


def test_commands_run_in_order_in_a_solved_practice(gate, shared_cache):
    """Each line runs where the labs are done, one after the other, with this environment's programs first."""
    blocks(
        gate,
        "```bash\n# first\n\npytest -q -m lab01_2 && touch done\n```\n",
        "```sh\ncourse practice 01 ./mywork\n```\n```text\nfalse\n```\n",
        "```bash\ntest -f done && test -f .course/practice.toml\n"
        f'test "$(command -v python)" = "{Path(sys.executable).parent}/python"\n'
        f'test "$COURSE_CACHE_DIR" = "{shared_cache}"\ncourse list\n```\n',
    )
    assert gate.true("01", COMMANDS) == "5 commands"


FAILING = {
    "red": ("pytest -q -m lab01_1 --no-such-option", "ended with status 4: "),
    "mistyped": ("pytst -m lab01_1", "ended with status 127: "),
    "silent": ("false", "ended with status 1: nothing was said"),
    "another place": ("cd mywork", "ended with status 1: "),
}


@pytest.mark.parametrize("case", FAILING)
def test_command_that_does_not_run(case, gate):
    """A line that doesn't end with status 0 is told, with its status and last word."""
    line, told = FAILING[case]
    blocks(gate, f"```bash\ntrue\n{line}\n```\n")
    assert gate.false("01", COMMANDS).startswith(f"`{line}` {told}")


def test_command_that_does_not_end(gate, monkeypatch):
    """A line that goes on is ended, and told."""
    monkeypatch.setattr("course.verify.blocks._DEADLINE", 0.3)
    blocks(gate, "```bash\nsleep 60\n```\n")
    assert gate.false("01", COMMANDS) == "`sleep 60` did not end within 0.3 s"


def test_commands_of_a_foundation_chapter(gate):
    """A chapter without labs has its commands run in the practice that comes next, which holds its tests."""
    blocks(
        gate, "```bash\ntest -f tests/test_00_workspace.py -a -f tests/test_01_index.py\n```\n", number="00"
    )
    assert gate.true("00", COMMANDS) == "1 command"


def test_commands_without_their_program(gate, monkeypatch, tmp_path):
    """Where the environment lacks a program, nothing is said of the handout: BROKEN."""
    (tmp_path / "python").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    blocks(gate, "```bash\ncourse list\n```\n")
    assert gate.broken("01", COMMANDS).startswith("there is no ")


def test_too_few_hints(gate):
    """A lab has three hints at least."""
    text = (gate.folder / "labs/02/hints.toml").read_text("utf-8")
    lines = text.splitlines()
    first = lines.index('"02.2" = [') + 1
    gate.write("labs/02/hints.toml", "\n".join(lines[:first] + lines[first + 2 :]))
    assert gate.false("02", HINTS) == "labs/02/hints.toml has 1 hint for Lab 02.2, expected at least 3"
    gate.write("labs/02/hints.toml", text.partition('"02.3"')[0])
    assert gate.false("02", HINTS) == "labs/02/hints.toml has 0 hints for Lab 02.3, expected at least 3"
    gate.true("02", AGREE)


HINT_FAULTS = {
    "no Chinese": ((', zh = "如果短语', ', fr = "如果短语'), 'labs/02/hints.toml: `hints."02.2"[1].zh`: expected a text'),
    "no such lab": (('"02.3" = [', '"02.4" = ['), "labs/02/hints.toml has hints for 02.4, which is no lab"),
    "no manifest": (("format = 1", "format = 3"), "labs/02/hints.toml: `format`: expected 1, got 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", HINT_FAULTS)
def test_hints_that_are_no_manifest(case, gate):
    """A fault of hints.toml is a falsehood, told by file and key."""
    change, told = HINT_FAULTS[case]
    gate.change("labs/02/hints.toml", change)
    assert gate.false("02", HINTS).startswith(told)


QUESTIONS = {
    "unknown test": (('test = "test_search_limit"', 'test = "test_search_limits"'), "question 1 names test_search_limits, which is no test of the chapter"),
    "no test": (('test = "test_search_limit", ', ""), "question 1 names no test that shows its answer"),
    "unknown lab": (('lab = "02.3"', 'lab = "02.4"'), "question 3 is about 02.4, which is no lab of the chapter"),
    "no Chinese": (('zh = "不包含：次序也算数。"', 'zh = " "'), "labs/02/quiz.toml: `question[1].answer.zh`: expected a text that is not blank"),
}  # fmt: skip


@pytest.mark.parametrize("case", QUESTIONS)
def test_question_that_no_test_answers(case, gate, reference_of_02):
    """Each question is about a lab of the chapter, in both languages, and names a test that shows its answer."""
    change, told = QUESTIONS[case]
    gate.bench.shared("reference 02", lambda: reference_of_02)
    gate.change("labs/02/quiz.toml", change)
    assert gate.false("02", QUIZ) == told
    gate.true("02", HINTS)


@pytest.fixture(scope="module")
def reference_of_02(tiny_course, new_gate, tmp_path_factory, tiny_history):
    """The run of chapter 02's tests on the reference that nobody doctored."""
    gate = new_gate(tiny_course.root, tmp_path_factory.mktemp("reference"))
    gate.bench.shared("history", lambda: tiny_history)
    return gate.bench.reference_run(tiny_course.chapter("02"))


def test_question_whose_test_is_red(gate):
    """A test that is red on the reference shows nothing."""
    gate.change("solutions/02/src/findex/index.py", ("[:limit]", ""))
    assert gate.false("02", QUIZ) == "question 1 names test_search_limit, which is not green"


def test_quiz_that_asks_nothing(gate):
    """A chapter asks something."""
    gate.write("labs/02/quiz.toml", "format = 1\n")
    assert gate.false("02", QUIZ) == "labs/02/quiz.toml asks nothing"


LINES = {
    "no line for a lab": (('    { check = "lab", lab = "02.2", line = "Lab 02.2: 1/1" },\n', ""), "labs/02/lab.toml has no acceptance line for Lab 02.2"),
    "no line for the chapter": (('    { check = "chapter", line = "chapter total: 4/4" },\n', ""), "labs/02/lab.toml has no acceptance line for the whole chapter"),
    "never restored": (('    { check = "fault_restored", fault = "02.2-anywhere", line = "fault restored: Lab 02.2 1/1" },\n', ""), "labs/02/lab.toml has the fault 02.2-anywhere injected and never restored"),
    "a lab's count": (("Lab 02.2: 1/1", "Lab 02.2: 2/2"), "the acceptance line 'Lab 02.2: 2/2' gives 2/2, expected 1/1"),
    "the first red's count": (("Lab 02.1 0/2", "Lab 02.1 0/3"), "the acceptance line 'first red: Lab 02.1 0/3, exact scaffold error' gives 0/3, expected 0/2"),
    "the restored lab's count": (("restored: Lab 02.2 1/1", "restored: Lab 02.2 2/2"), "the acceptance line 'fault restored: Lab 02.2 2/2' gives 2/2, expected 1/1"),
    "the chapter's count": (("total: 4/4", "total: 5/5"), "the acceptance line 'chapter total: 5/5' gives 5/5, expected 4/4"),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES)
def test_acceptance_lines_that_are_not_whole(case, gate):
    """The record has a line for each lab and the chapter, with their counts, and undoes each fault."""
    change, told = LINES[case]
    gate.change(LAB, change)
    assert gate.false("02", ACCEPTANCE) == told
    gate.true("02", "folders hold")


def test_chapter_without_acceptance_lines(gate):
    """A practice chapter says what is to be shown."""
    text = (gate.folder / LAB).read_text("utf-8")
    head, _, rest = text.partition("acceptance = [")
    gate.write(LAB, head + rest.partition("\n]\n")[2])
    assert gate.false("02", ACCEPTANCE) == "labs/02/lab.toml has no acceptance line for the whole chapter"
