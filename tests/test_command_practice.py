"""`course practice`, word for word."""

from __future__ import annotations

import sys

ENGLISH = """\
Practice of chapter 02 · Ranking and phrases
  in     {folder}
  edit   src/findex/index.py
  first  Run Lab 02.1, then decide what `add` has to remember from now on.

Next:
  cd mywork
  {python} -m pytest -m lab02_1
shows Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现
"""
CHINESE = """\
Practice of chapter 02 · 排序与短语
  in     {folder}
  edit   src/findex/index.py
  first  先运行 Lab 02.1，再决定 `add` 从现在起要记住什么。
  note   it lies inside the repository {outer}: `git add` there would take it in as an embedded repository; add it to that repository's .gitignore.

Next:
  {python} -m pytest -m lab02_1
shows Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现
"""


def test_practice_is_told_word_for_word(tiny_folder, tiny_history, call, tmp_path):
    """Where it is, what to edit, what to do first, then the commands and what they will show."""
    told = call("--course", tiny_folder, "practice", "02", "mywork", cwd=tmp_path)
    assert told.out == ENGLISH.format(folder=tmp_path / "mywork", python=sys.executable)
    assert (told.status, told.err) == (0, "")


def test_practice_in_place_and_in_a_repository_is_told_word_for_word(
    tiny_folder, tiny_history, call, program, tmp_path
):
    """In place no `cd` is needed; inside another repository one line says what `git add` would do there."""
    assert program(["git", "init", "-q", tmp_path]).status == 0
    here = tmp_path / "here"
    here.mkdir()
    told = call("--course", tiny_folder, "--lang", "zh", "practice", "2", ".", cwd=here)
    assert told.out == CHINESE.format(folder=here, outer=tmp_path, python=sys.executable)


def test_practice_for_programs_holds_the_same(tiny_folder, tiny_history, call, tmp_path):
    """The document has chapter, language, directory, both commits and the next commands."""
    told = call("--course", tiny_folder, "practice", "02", "mywork", "--json", "--lang", "zh", cwd=tmp_path)
    assert told.document == {
        "format": 1,
        "kind": "practice",
        "chapter": "02",
        "language": "zh",
        "directory": str(tmp_path / "mywork"),
        "parent": tiny_history.checkpoints["01"],
        "start": tiny_history.practices["02/zh"],
        "next": ["cd mywork", f"{sys.executable} -m pytest -m lab02_1"],
    }
