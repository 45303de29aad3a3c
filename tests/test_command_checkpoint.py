"""`course checkpoint`, word for word, and its export."""

from __future__ import annotations

import sys

import pytest

PRACTICE = """\
Chapter 02 · Ranking and phrases
  The index learns where words stand: it ranks documents and finds phrases.
  mode        practice
  parent      {parent}
  target      {target}
  teaching    src/findex/index.py
  focus test  tests/test_02_search.py
  Lab 02.1    2 tests · ranking
  Lab 02.2    1 test · phrases
  Lab 02.3    1 test · quoted queries
  first red   Lab 02.1 0/2 · Lab 02.1 ranking 尚未实现

Next:
  {python} -m course --course {course} practice 02 ./mywork
"""
FOUNDATION = """\
Chapter 00 · 工作区
  一个可以导入的包，和一个证明这一点的测试。
  mode        foundation
  parent      none: it is the first chapter
  target      {target}
  teaching    none
  focus test  tests/test_00_workspace.py

Next:
  {python} -m course --course {course} --lang zh checkpoint 00 --export ./chapter-00
"""


def test_checkpoint_is_told_word_for_word(tiny_folder, tiny_history, call, tmp_path):
    """Parent and target commit, teaching files, focus test, labs, first red, and what to run next."""
    ids, words = tiny_history.checkpoints, {"python": sys.executable, "course": tiny_folder}
    told = call("--course", tiny_folder, "checkpoint", "02", cwd=tmp_path)
    assert told.out == PRACTICE.format(parent=ids["01"], target=ids["02"], **words)
    told = call("--course", tiny_folder, "--lang", "zh", "checkpoint", "0")
    assert told.out == FOUNDATION.format(target=ids["00"], **words)


def test_checkpoint_for_programs_holds_the_same(tiny_folder, tiny_history, call, tmp_path):
    """The document has every fact that the text shows."""
    document = call("--course", tiny_folder, "checkpoint", "1", "--json", cwd=tmp_path).document
    facts = {key: document[key] for key in ("chapter", "mode", "parent", "target", "focus_test", "first_red")}
    assert facts == {
        "chapter": "01",
        "mode": "practice",
        "parent": tiny_history.checkpoints["00"],
        "target": tiny_history.checkpoints["01"],
        "focus_test": "tests/test_01_index.py",
        "first_red": "Lab 01.1 tokenize 尚未实现",
    }
    assert document["teaching_files"] == ["src/findex/index.py"]
    assert [(lab["id"], lab["tests"], lab["marker"]) for lab in document["labs"]] == [
        ("01.1", 2, "lab01_1"),
        ("01.2", 2, "lab01_2"),
    ]
    assert document["exported"] is None


@pytest.mark.parametrize("in_place", [False, True])
def test_export_is_the_targets_runnable_tree(in_place, tiny_folder, tiny_history, call, tests_in, tmp_path):
    """--export writes the target's tree, reference and project files, without a repository; its tests are green."""
    folder = tmp_path / "my export"
    if in_place:
        folder.mkdir()
    given, cwd = (".", folder) if in_place else (folder, tmp_path)
    told = call("--course", tiny_folder, "checkpoint", "02", "--export", given, "--json", cwd=cwd)
    assert (told.status, told.document["exported"]) == (0, str(folder))
    assert len(told.document["next"]) == (1 if in_place else 2)
    names = {path.name for path in folder.iterdir()}
    assert {"src", "tests", "pyproject.toml", "README.md", ".gitignore"} <= names
    assert not names & {".git", ".course", "AGENTS.md"}
    assert b"_PHRASE" in (folder / "src" / "findex" / "index.py").read_bytes()
    ran = tests_in(folder, "-q", "-m", "lab02")
    assert ran.status == 0
    assert ran.out.rstrip().endswith("Lab 02.1 2/2\nLab 02.2 1/1\nLab 02.3 1/1\nChapter 02 4/4")


def test_export_goes_nowhere_where_something_is(tiny_folder, tiny_history, call, practice, tmp_path):
    """An export keeps to the same rules for its destination as a practice; refused, it touches nothing."""
    (tmp_path / "file").write_text("mine\n", "utf-8")
    for given in (tmp_path, tmp_path / "file", practice / "export"):
        told = call("--course", tiny_folder, "checkpoint", "02", "--export", given)
        assert (told.status, told.out) == (2, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mywork"]
