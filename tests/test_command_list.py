"""`course list`, word for word."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ENGLISH = """\
Rebuild a text-search index

                             Tests  Marker
00      Workspace
01      Words and documents      4  lab01
  01.1  tokenize                 2  lab01_1
  01.2  add and find             2  lab01_2
02      Ranking and phrases      4  lab02
  02.1  ranking                  2  lab02_1
  02.2  phrases                  1  lab02_2
  02.3  quoted queries           1  lab02_3

Next:
  PYTHON -m course --course TINY practice 01 ./mywork
"""
CHINESE = """\
重建一个文本搜索索引

                      Tests  Marker
00      工作区
01      词与文档          4  lab01
  01.1  切词              2  lab01_1
  01.2  加入与查找        2  lab01_2
02      排序与短语        4  lab02
  02.1  排序              2  lab02_1
  02.2  短语              1  lab02_2
  02.3  带引号的查询      1  lab02_3

Next:
  PYTHON -m course --course TINY --lang zh practice 01 ./mywork
"""


def plain(out: str, folder: Path) -> str:
    """An output without what differs from machine to machine."""
    text = out.replace(sys.executable, "PYTHON").replace(str(folder), "TINY")
    return re.sub(r" +\n", "\n", text)


def test_list_is_told_word_for_word(tiny_folder, call, tmp_path):
    """Chapters and labs with titles, counts and markers, then the command that starts a practice."""
    assert plain(call("--course", tiny_folder, "list", cwd=tmp_path).out, tiny_folder) == ENGLISH
    assert plain(call("--course", tiny_folder, "--lang", "zh", "list").out, tiny_folder) == CHINESE


def test_list_for_programs_holds_the_same(tiny_folder, call):
    """The document has each chapter and lab with id, title, marker and number of tests."""
    document = call("--course", tiny_folder, "list", "--json").document
    assert document["title"] == "Rebuild a text-search index"
    assert [chapter["id"] for chapter in document["chapters"]] == ["00", "01", "02"]
    assert [chapter["mode"] for chapter in document["chapters"]] == ["foundation", "practice", "practice"]
    assert [chapter["tests"] for chapter in document["chapters"]] == [0, 4, 4]
    assert document["chapters"][2]["labs"][1] == {
        "id": "02.2", "marker": "lab02_2", "tests": 1, "title": "phrases", "last_seen": None,
    }  # fmt: skip


def test_list_in_a_practice_shows_its_progress(practice, call, done):
    """Inside a practice stands what the last check saw of each lab, and whether files were edited since."""
    assert "Last seen" in call("list", cwd=practice).out
    done(practice, "02.1")
    assert call("check").status == 1
    lines = [line.rstrip() for line in call("list").out.splitlines()]
    assert "  02.1  ranking                  2  lab02_1  2/2" in lines
    assert "  02.2  phrases                  1  lab02_2  0/1" in lines
    assert "  02.3  quoted queries           1  lab02_3" in lines
    assert lines[-1].endswith("-m course check")
    done(practice, "02.2")
    assert "  02.1  ranking                  2  lab02_1  2/2, edited since" in call("list").out
    labs = call("list", "--json").document["chapters"][2]["labs"]
    assert [lab["last_seen"] for lab in labs] == [
        {"passed": 2, "holds": False}, {"passed": 0, "holds": False}, None,
    ]  # fmt: skip


def test_list_survives_torn_evidence(practice, call):
    """Lines of the evidence that make no sense are passed over."""
    torn = b'{"format": 1, "kind": "check", "lab": "02.1", "passed": "x"}\n\xff\n[]\n{"format": 1, "kind": "check"}\n{'
    (practice / ".course" / "evidence.jsonl").write_bytes(torn)
    assert call("list", cwd=practice).status == 0


def test_course_without_practice_chapters_is_listed(tiny, call):
    """A course whose chapters are all foundation can be listed; its checkpoints are what comes next."""
    file = tiny / "checkpoints" / "course.toml"
    file.write_text(file.read_text("utf-8").replace('["00", "01", "02"]', '["00"]'), "utf-8")
    assert call("--course", tiny, "list").out.splitlines()[-1].endswith("checkpoint 00")


def test_printed_command_leads_to_a_free_place(tiny_folder, call, practice, tmp_path):
    """Where ./mywork is taken, or from inside of a practice, the next command names a place that is free."""
    (tmp_path / "here" / "mywork").mkdir(parents=True)
    out = call("--course", tiny_folder, "list", cwd=tmp_path / "here").out
    assert out.rstrip().endswith("./mywork2")
    inside = call("checkpoint", "02", "--json", cwd=practice).document["next"][-1]
    assert inside.endswith(f"practice 02 {practice.parent / 'mywork2'}")
