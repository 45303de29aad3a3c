"""`course handout`: the chapter's text, as it is for programs and rendered for people."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from course.handout import lab_section

TEXT = """\
# Chapter 12

Lab 12.1 is named here, in no heading.

## Lab 12.10 · another one
ten

## The two labs
```sh
# Lab 12.1 in a comment of a block
```

### Lab 12.1 · the first
one

#### Finer points of it
fine

~~~~
## Lab 12.2 in a block
~~~
still in it
~~~~

### Lab 12.2 · the second
two
## Appendix
end
"""


def test_piped_handout_is_the_file(practice, call, tiny_folder):
    """Without a terminal the text is printed as it was written."""
    answer = call("handout", cwd=practice)
    assert answer.status == 0
    assert answer.out == (tiny_folder / "labs/02/handout.en.md").read_text("utf-8")


@pytest.mark.parametrize(("number", "heading"), [("00", "# 第 00 章 · 工作区"), ("1", "# 第 01 章")])
def test_any_chapter_is_read_anywhere(call, tiny_folder, number, heading):
    """Foundation chapters have a text too, and no practice is needed."""
    answer = call("--course", tiny_folder, "handout", number, "--lang", "zh", cwd="/")
    assert (answer.status, answer.out.splitlines()[0][: len(heading)]) == (0, heading)


def test_section_ends_at_the_next_heading_of_its_level():
    """A section holds its subsections; headings in fenced blocks are none, ids are matched whole."""
    first = lab_section(TEXT, "12.1")
    assert first is not None
    assert first.startswith("### Lab 12.1 · the first\none\n")
    assert first.endswith("still in it\n~~~~\n")
    assert lab_section(TEXT, "12.2") == "### Lab 12.2 · the second\ntwo\n"
    assert lab_section(TEXT, "12.10") == "## Lab 12.10 · another one\nten\n"
    assert lab_section(TEXT, "2.1") is None
    assert lab_section(TEXT, "12.3") is None


def test_lab_option_shows_only_its_section(call, practice):
    """--lab implies its chapter."""
    answer = call("handout", "--lab", "2.2", cwd=practice)
    assert answer.out.splitlines()[0] == "## Lab 02.2 · phrases"
    assert "02.3" not in answer.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["handout", "07"], "course: This course has no chapter 07."),
        (["handout", "01", "--lab", "02.1"], "course: Lab 02.1 is not one of chapter 01."),
        (["handout", "--lab", "02"], "course: '02' is not a lab."),
        (["handout"], "course: Which chapter? This is not inside a practice."),
    ],
)
def test_wrong_use_is_one_sentence(call, tiny_folder, arguments, sentence):
    """What can't be shown is said, with what there is."""
    answer = call("--course", tiny_folder, *arguments, cwd="/")
    assert (answer.status, answer.told[0], len(answer.told)) == (2, sentence, 2)


def test_broken_course_is_status_three(tiny, call):
    """A missing text, or one without the lab's heading, is the course's fault."""
    file = tiny / "labs/02/handout.en.md"
    file.write_text("# Chapter 02\n", "utf-8")
    unnamed = call("--course", tiny, "handout", "--lab", "02.1", cwd="/")
    file.unlink()
    missing = call("--course", tiny, "handout", "02", cwd="/")
    assert (unnamed.status, missing.status) == (3, 3)
    assert unnamed.told[0] == "course: The handout of chapter 02 has no heading that names Lab 02.1."
    assert str(file) in missing.told[0]


def test_json_holds_the_text(call, practice):
    """A program reads chapter, lab, language and text."""
    document = call("handout", "--lab", "02.3", "--json", cwd=practice).document
    text = document.pop("text")
    assert text.startswith("## Lab 02.3 · quoted queries\n")
    assert document == {
        "format": 1,
        "kind": "handout",
        "chapter": "02",
        "lab": "02.3",
        "language": "en",
        "title": "Ranking and phrases",
    }


def paging(folder: Path, name: str) -> tuple[dict[str, str], Path]:
    """A pager that keeps what it is given."""
    program, kept = folder / name, folder / "paged"
    program.write_text(f'#!/bin/sh\ncat > "{kept}"\n')
    program.chmod(0o755)
    return {"PAGER": str(program), "TERM": "xterm"}, kept


def test_terminal_renders_and_pages_what_is_longer_than_the_screen(practice, terminal, ended, tmp_path):
    """On a terminal markdown is rendered; PAGER gets it where the screen is too small."""
    env, kept = paging(tmp_path, "mypager")
    answer = ended(terminal("handout", cwd=practice, env=env, size=(10, 80)))
    assert (answer.status, answer.out) == (0, "")
    paged = kept.read_text("utf-8")
    assert "pytest -m lab02_1" in paged
    assert "```" not in paged
    assert "\x1b" not in paged, "an unknown pager gets plain text"


def test_terminal_prints_what_fits(practice, terminal, ended, tmp_path):
    """No pager where the text fits, nor with --no-pager, nor where PAGER is not there."""
    env, kept = paging(tmp_path, "mypager")
    for arguments, variables, size in (
        (["handout"], env, (60, 80)),
        (["handout", "--no-pager"], env, (5, 80)),
        (["handout"], {"PAGER": "no-such-pager"}, (5, 80)),
        (["handout"], {"PAGER": "cat"}, (5, 80)),
    ):
        answer = ended(terminal(*arguments, cwd=practice, env=variables, size=size))
        assert (answer.status, "lab02_3" in answer.out) == (0, True)
    assert not kept.exists()


def test_less_gets_styles(practice, terminal, ended, tmp_path):
    """A pager that is known to show styles gets them, and is told to where it was told nothing."""
    env, kept = paging(tmp_path, "less")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    answer = ended(terminal("handout", cwd=practice, env={**env, "PATH": path}, size=(5, 80)))
    assert answer.status == 0
    assert "\x1b[" in kept.read_text("utf-8")
