"""The claims about what is built: trees, folders, practices made twice, commit ids."""

from __future__ import annotations

import shutil

import pytest

from course.catalog import Course, load_course
from course.pins import write_pins

STARTER = "starters/02/src/findex/index.py"
SOLUTION = "solutions/02/src/findex/index.py"
LAB = "labs/02/lab.toml"
README = "starters/_project/README.md.jinja"


def test_starter_that_does_not_compile(gate):
    """A syntax error of the starter is told by file and line; what needs the history or its text is BROKEN."""
    gate.change(STARTER, ("def tokenize(text: str) -> list[str]:", "def tokenize(text: str) -> list[str]"))
    assert gate.false("02", "starter builds (en)") == "src/findex/index.py:10: expected ':'"
    assert gate.broken("02", "starter holds no answer").startswith(
        "src/findex/index.py can't be parsed: expected ':', line 10"
    )
    assert gate.broken("02", "first red is exact").startswith(
        "Chapter 02: src/findex/index.py can't be parsed"
    )
    gate.true("02", "handouts agree")


def test_starter_that_speaks_at_import(gate):
    """Importing a module says nothing: what it prints makes the claim false, in each language."""
    gate.change(STARTER, ("import re\n", 'import re\n\nprint("loaded")\n'))
    told = "findex.index does not import cleanly: loaded"
    assert gate.false("02", "starter builds (en)") == told
    assert gate.false("02", "starter builds (zh)") == told
    gate.true("02", "target builds")


def test_starter_without_the_package(gate):
    """A starter tree has the package under study."""
    (gate.folder / "checkpoints/00/src/findex/__init__.py").unlink()
    shutil.rmtree(gate.folder / "starters/01/src")
    assert gate.false("01", "starter builds (en)").startswith("there is no package findex in ")


def test_target_that_does_not_import(gate):
    """The reference imports, or the claim says what stopped it."""
    gate.change(SOLUTION, ("import re\n", "import re\nimport nowhere_at_all\n"))
    assert gate.false("02", "target builds") == (
        "findex.index does not import cleanly: ModuleNotFoundError: No module named 'nowhere_at_all'"
    )
    gate.true("01", "target builds")


STRAYS = {
    "fault without an entry": ("labs/02/faults/02.1-gone.py", "labs/02/faults/02.1-gone.py is a file"),
    "test of another name": ("labs/02/test_search.py", "labs/02/test_search.py is a file"),
    "handout in no language": ("labs/02/handout.de.md", "labs/02/handout.de.md is a file"),
    "adapter without an exercise": ("labs/02/transfer/correct_one.py", "labs/02/transfer/correct_one.py is a file"),
    "starter of another file": ("starters/02/src/findex/more.py", "starters/02/src/findex/more.py is no teaching"),
    "solution of another file": ("solutions/02/src/findex/more.py", "solutions/02/src/findex/more.py is no teaching"),
    "stage of no lab": (
        "solutions/02/stages/02.7/src/findex/index.py",
        "solutions/02/stages/02.7/src/findex/index.py is no teaching",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STRAYS)
def test_file_that_nobody_declares(case, gate):
    """A chapter's folders hold no file that lab.toml doesn't know of."""
    name, told = STRAYS[case]
    gate.write(name, '"""Nobody knows me."""\n')
    assert gate.false("02", "folders hold").startswith(told)
    gate.true("01", "folders hold")


def test_leftovers_are_nobodys(gate):
    """Bytecode, hidden files and editors' copies make no claim false."""
    for name in ("__pycache__/test.pyc", ".DS_Store", "lab.toml~", "faults/.x.swp", "#lab.toml#"):
        gate.write(f"labs/02/{name}", "")
    assert gate.true("02", "folders hold") == "16 files"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("labs/02/faults/02.2-anywhere.patch", "labs/02/faults/02.2-anywhere.patch is missing"),
        ("labs/02/test_02_search.py", "labs/02/test_02_search.py is missing"),
    ],
)
def test_declared_file_that_is_missing(name, told, gate):
    """Each fault has its patch, and the focus test is there."""
    (gate.folder / name).unlink()
    assert gate.false("02", "folders hold") == f"{told}, which lab.toml declares"


def test_teaching_file_that_nobody_wrote(gate):
    """A teaching file is in the chapter's solution, or comes from an earlier chapter."""
    gate.change(LAB, ('["src/findex/index.py"]', '["src/findex/index.py", "src/findex/rank.py"]'))
    assert gate.false("02", "folders hold") == (
        "src/findex/rank.py is a teaching file, and solutions/02 does not hold it"
    )


def test_missing_pins_are_told(gate):
    """Without history.toml there is nothing to equal."""
    assert gate.false("", "pins") == "there is no checkpoints/history.toml; `course pin` writes it"
    assert gate.true("", "every manifest") == "3 chapters, 2 to practise"
    assert gate.true("", "built twice") == "12 commits"


def test_pins_that_hold_and_that_do_not(gate, tiny_history):
    """The chapters whose commit is not the pinned one are named; an unreadable file of pins is false too."""
    course = load_course(gate.folder)
    ids = tiny_history.checkpoints
    write_pins(course, ids)
    assert gate.true("", "pins") == "3 checkpoints"
    write_pins(course, {**ids, "02": ids["01"]})
    assert gate.false("", "pins") == "checkpoint 02 differs; `course pin` renews the pins"
    write_pins(course, {**ids, "02": ids["01"], "03": ids["01"]})
    assert gate.false("", "pins") == "checkpoints 02, 03 differ; `course pin` renews the pins"
    gate.write("checkpoints/history.toml", "format = 9\n")
    assert gate.false("", "pins").startswith("checkpoints/history.toml: `checkpoints`: expected a table")


def test_installed_course_off_its_pins(gate, tiny_history, monkeypatch):
    """What keeps an installed course from running is a false claim of the gate."""
    write_pins(load_course(gate.folder), {**tiny_history.checkpoints, "00": "0" * 40})
    monkeypatch.setattr(Course, "installed", True)
    assert (
        gate.false("", "pins") == "The installed course tiny is not what was pinned: checkpoints 00 differ."
    )


def test_contents_that_are_never_the_same(gate):
    """A template that rolls dice gives other commits and other practices each time."""
    with (gate.folder / README).open("a", encoding="utf-8") as file:
        file.write("\n{{ range(100000) | random }}\n")
    assert gate.false("", "built twice").startswith("checkpoints 00: ")
    assert gate.false("01", "made twice is the same, one commit after its parent (en)") == (
        "README.md is not what starter and template make of it a second time"
    )
    gate.true("01", "starter holds no answer")


def test_history_that_was_tampered_with(gate, tiny_history):
    """A cached history that the contents don't give is found out by building it again."""
    first, *_ = tiny_history.stages
    changed = {**tiny_history.stages, first: tiny_history.checkpoints["00"]}
    gate.bench.shared("history", lambda: type(tiny_history)(
        tiny_history.repository, tiny_history.checkpoints, changed, tiny_history.practices
    ))  # fmt: skip
    told = gate.false("", "built twice")
    assert told.startswith(f"stages {first}: {tiny_history.checkpoints['00']} the first time, ")


def test_practice_with_another_file(gate):
    """A practice has the files that starter and template say, and no others."""
    (gate.practice("02") / "tests" / "test_more.py").write_text("", "utf-8")
    assert gate.false("02", "one commit after its parent (en)") == (
        "tests/test_more.py is not what starter and template make of it a second time"
    )


def test_practice_with_other_commits(gate, git):
    """Two practices made apart have the same commits."""
    git(gate.practice("02"), "commit", "--quiet", "--amend", "--message=Another")
    assert gate.false("02", "one commit after its parent (en)") == "the two have different commits"
    gate.true("02", "one commit after its parent (zh)")


def test_practice_that_starts_elsewhere(gate, git):
    """The commit before the starter is the parent's checkpoint, none between and none left out."""
    root = gate.practice("02")
    checkpoint, before = git(root, "rev-parse", "HEAD~1", "HEAD~2")
    (commit,) = git(root, "commit-tree", "HEAD^{tree}", "-p", before, "-m", "Chapter 02 starter")
    git(root, "update-ref", "HEAD", commit)
    gate.bench.once("practice-02-en-again", lambda path: shutil.copytree(root, path))
    assert gate.false("02", "one commit after its parent (en)") == (
        f"the commit before the starter is {before}, not the checkpoint {checkpoint}"
    )
