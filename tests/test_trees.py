"""Trees: what a course's folders stand for, and what in them never counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from course.catalog import Course, load_course
from course.projects import project_files
from course.trees import (
    lab_tests,
    parent_tree,
    practice_tree,
    read_template,
    read_tree,
    solution_tree,
    starter_tree,
    target_tree,
)

LEFTOVERS = [
    "index.py~", ".#index.py", "#index.py#", ".index.py.swp", "index.py.orig", "index.py.rej", "index.pyc",
    "__pycache__/index.cpython-311.pyc", "__pycache__/index.py", ".DS_Store", "._index.py", "Thumbs.db",
    "findex.egg-info/PKG-INFO", "findex.egg-info/top_level.txt", ".pytest_cache/README.md", ".idea/x.json",
    ".venv/lib/site.py", "index.py.bak", "index.py.tmp",
]  # fmt: skip
CONTENTS = ["new.py", "data/table.csv", "deep/er/py.typed", "note_1.md", "[a].json", "settings.toml"]


@pytest.mark.parametrize("name", LEFTOVERS)
def test_leftover_is_no_content(name, tmp_path: Path):
    """Bytecode, editor files, installer and system leftovers are not part of a tree."""
    for file in (tmp_path / name, tmp_path / "sub" / name, tmp_path / "index.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n", "utf-8")
    assert read_tree(tmp_path) == {"index.py": b"x\n"}


@pytest.mark.parametrize("name", CONTENTS)
def test_content_is_read(name, tmp_path: Path):
    """Text files of the allowed kinds are content, wherever they lie."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"one\r\ntwo\n")
    assert read_tree(tmp_path) == {name: b"one\ntwo\n"}


def test_template_is_read_without_leftovers(tmp_path: Path):
    """Of a template everything counts that Copier renders, hidden files too, but no editor's leftovers."""
    kept = [
        "copier.yml",
        ".gitattributes.jinja",
        "{% if practice %}A.md{% endif %}.jinja",
        "tests/conftest.py",
    ]
    dropped = ["copier.yml~", "._a.jinja", ".#a.jinja", "a.jinja~", "__pycache__/x.py", ".DS_Store", "x.pyc"]
    for name in kept + dropped:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n", "utf-8")
    assert sorted(read_template(tmp_path)) == sorted(kept)


def test_missing_folder_is_an_empty_tree(tmp_path: Path):
    """A chapter without starter or solution folder adds nothing."""
    assert read_tree(tmp_path / "none") == {}


def test_target_is_the_parents_target_with_tests_and_solution(tiny_course: Course):
    """Target tree N = target tree N−1 + `labs/N` tests + `solutions/N`."""
    for chapter in tiny_course.chapters:
        whole = parent_tree(tiny_course, chapter) | lab_tests(chapter) | solution_tree(chapter)
        assert target_tree(tiny_course, chapter) == whole
    assert "tests/test_02_search.py" in whole
    assert b"_PHRASE" in whole["src/findex/index.py"]


def test_practice_is_the_parents_target_with_tests_and_starter(tiny_course: Course):
    """Practice tree N = target tree N−1 + `labs/N` tests + `starters/N`."""
    chapter = tiny_course.chapter("02")
    tree = practice_tree(tiny_course, chapter)
    assert tree == parent_tree(tiny_course, chapter) | lab_tests(chapter) | starter_tree(chapter)
    assert b"Lab 02.1" in tree["src/findex/index.py"]
    assert b"_PHRASE" not in b"".join(tree.values())


def test_tests_are_the_only_lab_files_in_a_tree(tiny_course: Course):
    """Of `labs/NN` the tests go to `tests/`; handouts, hints, faults and the demo go nowhere."""
    paths = target_tree(tiny_course, tiny_course.chapters[-1])
    assert {path.partition("/")[0] for path in paths} == {"src", "tests"}
    assert all(path.startswith("tests/test_") for path in paths if path.startswith("tests/"))


def test_project_files_are_those_of_a_practice(tiny_course: Course):
    """A practice's project files are all there, README and AGENTS in the practice's language."""
    chapter = tiny_course.chapter("02")
    english, chinese = (project_files(tiny_course, chapter, language) for language in ("en", "zh"))
    names = {
        ".course/practice.toml", ".editorconfig", ".gitattributes", ".gitignore", ".vscode/settings.json", "AGENTS.md",
        "README.md", "pyproject.toml", "tests/conftest.py",
    }  # fmt: skip
    assert set(english) == set(chinese) == names
    assert "Ranking and phrases" in english["README.md"].decode()
    assert "排序与短语" in chinese["README.md"].decode()
    assert "陪练" in chinese["AGENTS.md"].decode()
    assert "No complete answers" in english["AGENTS.md"].decode()


def test_user_settings_of_copier_change_nothing(tiny_course: Course, tmp_path, monkeypatch):
    """What the user set up for Copier has no say in the project files."""
    plain = project_files(tiny_course)
    settings = tmp_path / "settings.yml"
    settings.write_text("defaults:\n  dot_gitignore: .evil\n  language: zh\n", "utf-8")
    monkeypatch.setenv("COPIER_SETTINGS_PATH", str(settings))
    assert project_files(tiny_course) == plain


def test_broken_git_configuration_stops_no_rendering(tiny_folder, tmp_path, program):
    """Copier asks git: in a process that asked for nothing else, a broken configuration is out of its way too."""
    (tmp_path / ".gitconfig").write_text("[core\nnonsense\n", "utf-8")
    code = (
        "import sys; from pathlib import Path; from course.catalog import load_course\n"
        "from course.projects import project_files; print(len(project_files(load_course(Path(sys.argv[1])))))"
    )
    ran = program([sys.executable, "-c", code, tiny_folder], env={"HOME": str(tmp_path)})
    assert (ran.status, ran.out) == (0, "7\n"), ran.err


def test_checkout_with_crlf_is_the_same_tree(tiny, tiny_course: Course):
    """Line ends become LF when contents are read, whatever git made of them at checkout."""
    for file in tiny.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    course = load_course(tiny)
    for mine, theirs in zip(course.chapters, tiny_course.chapters, strict=True):
        assert target_tree(course, mine) == target_tree(tiny_course, theirs)
        assert practice_tree(course, mine) == practice_tree(tiny_course, theirs)
