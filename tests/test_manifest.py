"""Manifests: what may stand in them, and how the command tells what is wrong with one."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from course.catalog import Course, load_course
from course.manifest import ManifestError

COURSE = "checkpoints/course.toml"
LAB = "labs/02/lab.toml"

COURSE_TOML = """\
format = 1
id = "tiny"
title = { en = "Search", zh = "搜索" }
languages = ["en", "zh"]
package = "findex"
chapters = ["00", "01", "02"]
"""
LAB_TOML = """\
format = 1
id = "02"
mode = "practice"
parent = "01"
teaching_files = ["src/findex/index.py"]
focus_test = "tests/test_02_search.py"
title = { en = "Ranking", zh = "排序" }
summary = { en = "It ranks.", zh = "能排序。" }
first_step = { en = "Run it.", zh = "先运行。" }
acceptance = [
    { check = "lab", lab = "02.1", line = "Lab 02.1: 2/2" },
    { check = "fault_injected", fault = "02.1-once", line = "fault injected" },
]

[[lab]]
id = "02.1"
marker = "lab02_1"
tests = 2
first_red = "Lab 02.1 ranking 尚未实现"
title = { en = "ranking", zh = "排序" }
goal = { en = "Best first.", zh = "最好的在前。" }

[[fault]]
name = "02.1-once"
lab = "02.1"
tests = ["test_search"]
summary = { en = "A word counts once.", zh = "只算一次。" }
reason = { en = "It is close.", zh = "差不多。" }
[[fault]]
name = "02.1-limit"
lab = "02.1"
tests = ["test_limit"]
summary = { en = "Cut too early.", zh = "截断太早。" }
reason = { en = "Less work.", zh = "省事。" }

[transfer]
faults = ["02.1-once"]
"""

# file, text that is there, what it becomes, the key that is named, words of the expectation
FAULTS = {
    "no format": (COURSE, "format = 1\n", "", "format", "missing"),
    "another format": (COURSE, "format = 1\n", "format = 2\n", "format", "expected 1, got 2"),
    "another format, other keys": (LAB, "format = 1\n", "format = 2\nnew = 1\n", "format", "expected 1, got 2"),
    "format is text": (LAB, "format = 1\n", 'format = "1"\n', "format", "expected 1"),
    "course id": (COURSE, 'id = "tiny"', 'id = "Tiny Course"', "id", "lower-case"),
    "unknown key": (COURSE, "title = ", "titel = ", "titel", "no such key"),
    "title lacks a language": (COURSE, ', zh = "搜索"', "", "title.zh", "not blank"),
    "title is text": (COURSE, '{ en = "Search", zh = "搜索" }', '"Search"', "title", "expected `object`"),
    "title is a number": (COURSE, 'en = "Search"', "en = 1", "title[...]", "expected `str`"),
    "no language": (COURSE, '["en", "zh"]', "[]", "languages", "at least one"),
    "language is a path": (COURSE, '["en", "zh"]', '["en", "../zh"]', "languages[1]", "codes"),
    "language twice": (COURSE, '["en", "zh"]', '["en", "zh", "en"]', "languages[2]", "each once"),
    "package is no name": (COURSE, '"findex"', '"fin-dex"', "package", "package name"),
    "package is a keyword": (COURSE, '"findex"', '"class"', "package", "package name"),
    "no chapter": (COURSE, '["00", "01", "02"]', "[]", "chapters", "at least one"),
    "chapter of one digit": (COURSE, '["00", "01", "02"]', '["00", "1"]', "chapters[1]", "two digits"),
    "chapters fall": (COURSE, '["00", "01", "02"]', '["00", "02", "01"]', "chapters", "rising"),
    "chapter twice": (COURSE, '["00", "01", "02"]', '["00", "01", "001", "02"]', "chapters", "rising"),
    "id of another chapter": (LAB, 'id = "02"', 'id = "01"', "id", '"02"'),
    "mode": (LAB, 'mode = "practice"', 'mode = "exam"', "mode", "exam"),
    "foundation with labs": (LAB, 'mode = "practice"', 'mode = "foundation"', "mode", '"practice"'),
    "parent": (LAB, 'parent = "01"', 'parent = "00"', "parent", '"01"'),
    "no parent": (LAB, 'parent = "01"\n', "", "parent", '"01"'),
    "no teaching file": (LAB, '["src/findex/index.py"]', "[]", "teaching_files", "at least one"),
    "teaching file outside": (LAB, '["src/f', '["src/../../f', "teaching_files[0]", "src/findex/file.py"),
    "teaching file is absolute": (LAB, '["src/f', '["/src/f', "teaching_files[0]", "src/findex/file.py"),
    "focus test elsewhere": (LAB, '"tests/test_02', '"labs/test_02', "focus_test", "tests/test_02_topic.py"),
    "text in an unknown language": (LAB, 'summary = { en', 'summary = { de = "x", en', "summary.de", "en, zh"),
    "no first step": (LAB, "first_step = ", "# first_step = ", "first_step", "first thing"),
    "no lab": (LAB, LAB_TOML.partition("acceptance")[2], "= []\n", "lab", "at least one"),
    "lab id": (LAB, 'id = "02.1"', 'id = "02.4"', "lab[0].id", '"02.1"'),
    "lab marker": (LAB, '"lab02_1"', '"lab2_1"', "lab[0].marker", '"lab02_1"'),
    "lab without tests": (LAB, "tests = 2", "tests = 0", "lab[0].tests", "at least 1"),
    "lab with text for tests": (LAB, "tests = 2", 'tests = "2"', "lab[0].tests", "expected `int`"),
    "lab without goal": (LAB, "goal = ", "# goal = ", "lab[0].goal", "missing"),
    "blank first red": (LAB, '"Lab 02.1 ranking 尚未实现"', '" "', "lab[0].first_red", "exact message"),
    "first red of two lines": (LAB, '"Lab 02.1 ranking', '"Lab 02.1\\nranking', "lab[0].first_red", "one line"),
    "blank title of a lab": (LAB, 'title = { en = "ranking"', 'title = { en = " "', "lab[0].title.en", "not blank"),
    "fault name": (LAB, 'name = "02.1-limit"', 'name = "02.1 limit"', "fault[1].name", "02.1-what"),
    "fault named for another lab": (LAB, 'name = "02.1-limit"', 'name = "02.2-x"', "fault[1].name", "02.1-what"),
    "fault twice": (LAB, 'name = "02.1-limit"', 'name = "02.1-once"', "fault[1].name", "twice"),
    "fault of no lab": (
        LAB, 'name = "02.1-limit"\nlab = "02.1"', 'name = "02.9-limit"\nlab = "02.9"', "fault[1].lab", "02.9",
    ),
    "fault without tests": (LAB, '["test_limit"]', "[]", "fault[1].tests", "must kill"),
    "fault with a wrong key": (LAB, "reason = ", "reasons = ", "fault[0].reasons", "no such key"),
    "fault without a reason": (LAB, 'en = "Less work."', 'en = ""', "fault[1].reason.en", "not blank"),
    "transfer": (LAB, 'faults = ["02.1-once"', 'faults = ["02.1-here"', "transfer.faults[0]", "02.1-here"),
    "acceptance lab": (LAB, '"lab", lab = "02.1"', '"lab", lab = "03.2"', "acceptance[0].lab", "03.2"),
    "acceptance fault": (LAB, 'fault = "02.1-once"', 'fault = "02.1-x"', "acceptance[1].fault", "02.1-x"),
    "acceptance check": (LAB, 'check = "lab"', 'check = "labs"', "acceptance[0].check", "labs"),
}  # fmt: skip


@pytest.fixture
def written(tiny: Path) -> Path:
    """The tiny course with manifests whose every line this file knows."""
    (tiny / COURSE).write_text(COURSE_TOML, "utf-8")
    (tiny / LAB).write_text(LAB_TOML, "utf-8")
    return tiny


def change(folder: Path, name: str, old: str, new: str) -> None:
    file = folder / name
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize("case", FAULTS)
def test_faulty_manifest_names_file_key_and_expectation(case, written, call):
    """Every fault of a manifest is told in one line that gives the file, the key and what was expected."""
    name, old, new, key, words = FAULTS[case]
    change(written, name, old, new)
    ran = call("--course", written, "list")
    assert ran.status == 3
    assert ran.out == ""
    assert ran.told[0].startswith(f"course: {name}: `{key}`: ")
    assert words in ran.told[0]
    assert "course verify" in ran.told[1]


def test_parent_of_the_first_chapter_is_refused(tiny, call):
    """The first chapter starts from nothing: a parent there is a fault."""
    change(tiny, "labs/00/lab.toml", 'id = "00"\n', 'id = "00"\nparent = "00"\n')
    assert (
        call("--course", tiny, "list")
        .told[0]
        .startswith("course: labs/00/lab.toml: `parent`: expected no parent")
    )


def test_whole_manifests_are_taken(written, call):
    """The manifests that the faults above are made from are good ones."""
    assert call("--course", written, "list").status == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(None, "the file is missing", id="missing"),
        pytest.param(b"format = \n", "expected TOML", id="syntax"),
        pytest.param(b'format = 1\ntitle = "\xff"\n', "expected UTF-8 text, byte 20 is not", id="encoding"),
    ],
)
@pytest.mark.parametrize("name", [LAB, "labs/00/lab.toml"])
def test_unreadable_manifest_names_file_and_reason(name, data, words, tiny, call):
    """A manifest that is missing, no TOML or no UTF-8 is told by its file and the reason."""
    (tiny / name).unlink()
    if data is not None:
        (tiny / name).write_bytes(data)
    ran = call("--course", tiny, "list")
    assert ran.status == 3
    assert ran.told[0].startswith(f"course: {name}: ")
    assert words in ran.told[0]


@pytest.mark.parametrize("command", [("list",), ("checkpoint", "01"), ("practice", "01", "w"), ("pin",)])
def test_broken_manifest_ends_other_commands_with_3(command, tiny, call, tmp_path):
    """A bad manifest is the course's own fault: every command but `verify` ends with status 3, having done nothing."""
    (tiny / LAB).write_text("format = 1\n", "utf-8")
    before = sorted(tmp_path.rglob("*"))
    ran = call("--course", tiny, *command, cwd=tmp_path)
    assert ran.status == 3
    assert sorted(tmp_path.rglob("*")) == before


def test_broken_manifest_is_false_for_verify(tiny, course):
    """For `verify` a bad manifest is a false claim: status 1."""
    (tiny / LAB).write_text("format = 1\n", "utf-8")
    ran = course("--course", tiny, "verify")
    assert ran.status == 1
    assert "labs/02/lab.toml: `id`" in ran.out + ran.err


@pytest.mark.parametrize("name", [LAB, COURSE])
def test_manifest_of_another_editor_reads_the_same(name, tiny, tiny_course: Course):
    """A byte order mark and CRLF line ends, as some editors write them, change nothing."""
    data = (tiny / name).read_bytes()
    (tiny / name).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    course = load_course(tiny)
    assert course.manifest == tiny_course.manifest
    assert [one.manifest for one in course.chapters] == [one.manifest for one in tiny_course.chapters]


def test_hints_and_quiz_are_checked_like_the_others(tiny):
    """hints.toml and quiz.toml are manifests too: a fault in them names file and key."""
    change(tiny, "labs/02/hints.toml", "format = 1", "format = 3")
    change(tiny, "labs/02/quiz.toml", "ask = ", "asks = ")
    chapter = load_course(tiny).chapter("02")
    with pytest.raises(ManifestError) as hints:
        chapter.hints()
    with pytest.raises(ManifestError) as quiz:
        chapter.quiz()
    assert (hints.value.file, hints.value.key) == ("labs/02/hints.toml", "format")
    assert (quiz.value.file, quiz.value.key) == ("labs/02/quiz.toml", "question[0].asks")


def test_odd_title_survives_into_the_project_files(written, call, tmp_path):
    """Titles are free text: quotes, backslashes and template signs reach pyproject and README as they are."""
    title = r"""A "title" with \n, 'quotes', {{ braces }} and {% signs %} & <tags>"""
    change(written, COURSE, '"Search"', f"'''{title}'''")
    change(written, LAB, '"Ranking"', f"'''{title}'''")
    made = call("--course", written, "practice", "02", tmp_path / "w")
    assert made.status == 0
    project = tomllib.loads((tmp_path / "w" / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["description"] == title
    assert title in (tmp_path / "w" / "README.md").read_text("utf-8")


def test_missing_template_is_told(tiny, call, tmp_path):
    """A course without the template of the project files is broken: one sentence that says where it belongs."""
    shutil.rmtree(tiny / "starters" / "_project")
    ran = call("--course", tiny, "practice", "02", tmp_path / "w")
    assert ran.status == 3
    assert "template" in ran.told[0]
    assert "starters/_project" in ran.told[1]
    assert not (tmp_path / "w").exists()


def test_broken_template_is_told(tiny, call, tmp_path):
    """A template that Copier can't render is told in one sentence, and nothing is made."""
    (tiny / "starters" / "_project" / "README.md.jinja").write_text("{% if %}", "utf-8")
    ran = call("--course", tiny, "practice", "02", tmp_path / "w")
    assert ran.status == 3
    assert "can't be rendered" in ran.told[0]
    assert not (tmp_path / "w").exists()
