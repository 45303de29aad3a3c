"""The output: styled for people at a terminal, plain everywhere else, and never in the way of an encoding."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys

import pytest

from course.console import Output

ESCAPE = "\x1b"


@pytest.fixture
def shown(terminal, ended, tiny_folder):
    """What a terminal shows of `course list`."""

    def run(**environment):
        env = {"TERM": "xterm-256color", **environment}
        ran = ended(terminal("--course", tiny_folder, "list", cwd=tiny_folder, env=env))
        assert ran.status == 0
        return ran.out

    return run


def test_terminal_gets_styles(shown):
    """At a terminal the title is bold."""
    assert f"{ESCAPE}[1mRebuild a text-search index" in shown()


@pytest.mark.parametrize("value", ["1", "0"])
def test_no_color_gives_plain_text(value, shown):
    """With NO_COLOR set, to whatever, there is not one escape sign, bold included."""
    assert ESCAPE not in shown(NO_COLOR=value)


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_pipe_gets_plain_text(name, tiny_folder, course):
    """What is no terminal gets plain text, whatever the environment wants forced."""
    ran = course("--course", tiny_folder, "list", env={name: "1", "TERM": "xterm-256color"})
    assert ESCAPE not in ran.out
    assert "Rebuild a text-search index" in ran.out
    told = course("--course", tiny_folder, "checkpoint", "77", env={name: "1"})
    assert told.err.startswith("course: This course has no chapter 77.")


def encoded(arguments, encoding: str, folder) -> tuple[int, str, str]:
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "course", "--course", str(folder), *arguments]
    ran = subprocess.run(command, env=env, capture_output=True, check=False)
    return ran.returncode, ran.stdout.decode(encoding), ran.stderr.decode(encoding)


@pytest.mark.parametrize(("encoding", "dot"), [("cp1252", "·"), ("ascii", "-"), ("utf-8", "·"), ("gbk", "·")])
def test_signs_that_can_not_be_encoded_get_plain_ones(encoding, dot, tiny_folder, tiny_history):
    """An output that can't encode a sign gets a plain one, or its number, and no error."""
    status, out, err = encoded(["checkpoint", "02"], encoding, tiny_folder)
    assert (status, err) == (0, "")
    assert f"Chapter 02 {dot} Ranking and phrases" in out
    word = "尚未实现"
    shown = word if encoding in ("utf-8", "gbk") else word.encode("ascii", "backslashreplace").decode()
    assert f"Lab 02.1 ranking {shown}" in out


def test_json_of_a_narrow_output_says_the_same(tiny_folder, tiny_history):
    """JSON survives any encoding: where signs can't be written they are escaped."""
    wide, narrow = (
        encoded(["--lang", "zh", "list", "--json"], name, tiny_folder)[1] for name in ("utf-8", "cp1252")
    )
    assert json.loads(wide) == json.loads(narrow)
    assert "重建" in wide
    assert narrow.isascii()


def output_of(write, encoding: str = "utf-8") -> str:
    kept, buffer = sys.stdout, io.BytesIO()
    sys.stdout = io.TextIOWrapper(buffer, encoding=encoding)
    try:
        write(Output())
        sys.stdout.flush()
        return buffer.getvalue().decode(encoding)
    finally:
        sys.stdout.detach()
        sys.stdout = kept


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii", "gbk"])
def test_document_is_json_in_every_encoding(encoding):
    """Whatever signs a document holds, what is written parses to the same."""
    data = {"text": 'é · 尚 🦀 " \\ \x07 \ud800'}
    assert json.loads(output_of(lambda output: output.document("x", data), encoding)) == {
        "format": 1,
        "kind": "x",
        **data,
    }


def test_control_signs_are_made_visible():
    """Contents can't drive a terminal: control signs are shown, not sent."""
    assert output_of(lambda output: output.line("a\x1b[31mred\x07\u202eb")) == "a\\x1b[31mred\\x07\\u202eb\n"


def test_text_is_printed_as_it_is():
    """Neither markup nor emoji codes nor highlighting change a line; wide and hard spaces stay."""
    text = "[bold]:smile: [/x] 12 'q' https://x 中\u3000文\u00a0!"
    assert output_of(lambda output: output.line(text)) == text + "\n"


def test_long_lines_are_left_whole():
    """A line that may be copied is not broken where no terminal needs it."""
    text = "word " * 60 + "end"
    assert output_of(lambda output: output.line(text)) == text + "\n"


def test_every_plain_sign_is_there_for_a_narrow_output():
    """Signs of the command's own texts all have a plain form."""
    text = output_of(lambda output: output.line("· — – → ✓ ✗ ★ … ↳ × │ ─ └ ├ “ ” ’ ≤ ≥"), "ascii")
    assert text == '- - - -> ok x * ... > x | - ` | " " \' <= >=\n'


def test_no_color_still_asks_a_person():
    """NO_COLOR is about looks only: a person at a terminal is asked all the same."""
    code = "from course.console import Output; print(Output().is_terminal, Output().can_ask)"
    import pexpect

    shown = pexpect.run(shlex.join([sys.executable, "-c", code]), env={**os.environ, "NO_COLOR": "1"})
    assert shown.split() == [b"True", b"True"]


def test_narrow_terminal_breaks_lines_between_words(terminal, ended, practice):
    """A deviation goes on under its own text, and no word of it is cut."""
    ran = ended(terminal("check", cwd=practice, size=(40, 50), env={"TERM": "xterm", "NO_COLOR": "1"}))
    lines = ran.out.split("\n")
    told = lines[next(i for i, line in enumerate(lines) if line.startswith("  should hold  ")) :]
    assert told[0] == "  should hold  Every occurrence of every word"
    assert told[1].startswith(" " * 15 + "counts")
    assert all(len(line) <= 50 for line in told[:2])


def test_columns_of_zero_hide_nothing(tiny_folder, course):
    """COLUMNS=0 is as good as none."""
    wide = course("--course", tiny_folder, "list", env={"COLUMNS": "100"}).out
    assert course("--course", tiny_folder, "list", env={"COLUMNS": "0"}).out == wide
