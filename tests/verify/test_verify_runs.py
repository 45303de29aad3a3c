"""The claims that are proven by running tests: first red, stages, reference, steadiness."""

from __future__ import annotations

import pytest

STARTER = "starters/02/src/findex/index.py"
SOLUTION = "solutions/02/src/findex/index.py"
STAGE = "solutions/02/stages/02.1/src/findex/index.py"
TESTS = "labs/02/test_02_search.py"
LAB = "labs/02/lab.toml"
RANKING = 'raise NotImplementedError("Lab 02.1 ranking 尚未实现")'
FIRST = "the first red is exact"
SCAFFOLDS = "in the starter every lab is at a scaffold"
REFERENCE = "the reference is green"
STEADY = "tests give the same"


def test_first_red_with_another_message(gate):
    """The closing line of a learner's first run is lab.toml's first red, sign by sign."""
    gate.change(STARTER, (RANKING, RANKING.replace("ranking", "Ranking")))
    told = gate.false("02", FIRST)
    assert told.startswith(
        "expected the closing line 'Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现', got "
    )
    assert told.endswith(" 'Lab 02.1 0/2 · first red: Lab 02.1 Ranking 尚未实现']")
    gate.true("02", "starter builds (en)")


def test_first_red_by_another_exception(gate):
    """The right words in another exception are no scaffold."""
    gate.change(STARTER, (RANKING, RANKING.replace("NotImplementedError", "RuntimeError")))
    told = gate.false("02", FIRST)
    assert told.startswith(
        "expected the closing line 'Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现', got "
    )
    assert told.endswith("'Lab 02.1 0/2 · first red: RuntimeError: Lab 02.1 ranking 尚未实现']")


def test_first_red_with_a_test_that_passes(gate):
    """A starter in which one of the lab's tests is green already gives away that lab's count."""
    gate.change(
        STARTER, (RANKING, f'if query == "fish":\n            return [("pond", 3)]\n        {RANKING}')
    )
    gate.change(TESTS, ('    assert library().search("whale", limit=1) == []\n', ""))
    told = gate.false("02", FIRST)
    assert told.startswith("expected the closing line 'Lab 02.1 0/2 · first red: ")
    assert "Lab 02.1 1/2 · first red: Lab 02.1 ranking 尚未实现" in told
    assert gate.false("02", SCAFFOLDS) == (
        "test_search_limit is passed, expected NotImplementedError 'Lab 02.1 ranking 尚未实现'"
    )


def test_first_red_with_a_wrong_count(gate):
    """The manifest's count is held against what pytest counts, not against what carries the marker."""
    gate.change(LAB, ("tests = 2", "tests = 3"))
    assert gate.false("02", FIRST).startswith(
        "expected 3 failed and nothing else, got '2 failed, 8 deselected in"
    )
    counted = "2 tests carry lab02_1, the manifest has 3"
    assert gate.false("02", SCAFFOLDS) == counted
    assert gate.false("02", REFERENCE) == counted


def test_first_red_that_the_set_up_gives(gate):
    """A scaffold's red comes from the test's own body: fixtures call no learner code."""
    fixture = "@pytest.fixture(autouse=True)\ndef early():\n    library().search('x')\n\n\n"
    marks = "@pytest.mark.lab02\n@pytest.mark.lab02_1\ndef test_search_scores"
    gate.change(TESTS, (marks, fixture + marks))
    assert gate.false("02", SCAFFOLDS) == (
        "test_search_scores: expected NotImplementedError 'Lab 02.1 ranking 尚未实现', "
        "got NotImplementedError: Lab 02.1 ranking 尚未实现 in its setup"
    )


def test_starter_at_no_scaffold_of_the_chapter(gate):
    """Later labs of a starter show the scaffold of some lab of this chapter, not another's."""
    gate.change(STARTER, ("Lab 02.2 phrases", "Lab 01.1 tokenize"))
    assert gate.false("02", SCAFFOLDS) == (
        "test_phrase_words_follow: expected NotImplementedError 'Lab 02.1 ranking 尚未实现' or "
        "'Lab 02.2 phrases 尚未实现' or 'Lab 02.3 quoted queries 尚未实现', "
        "got NotImplementedError: Lab 01.1 tokenize 尚未实现"
    )


def test_stage_whose_labs_are_not_green(gate):
    """The form between two labs does what the labs before ask for."""
    gate.change(STAGE, ("[:limit]", ""))
    assert gate.false("02", "Lab 02.1 can be done").startswith(
        "test_search_limit of Lab 02.1: AssertionError: "
    )
    assert gate.true("02", REFERENCE) == "4/4, 1 extra"


def test_stage_that_completes_too_much(gate):
    """Where `completes` is wrong a later lab is done too early, and has no red of its own."""
    gate.change(LAB, ('completes = ["Index.search"]', 'completes = ["Index.serch"]'))
    assert gate.false("02", "Lab 02.2 can be done") == (
        "test_search_quoted is passed, expected NotImplementedError 'Lab 02.3 quoted queries 尚未实现'"
    )
    gate.true("02", "Lab 02.1 can be done")


def test_stage_that_shows_a_foreign_scaffold(gate):
    """The next lab's tests fail with that lab's own message, though any unfinished lab's would do later."""
    early = "    assert built.search('\"fish red\" old') == [('lake', 3)]\n"
    gate.change(TESTS, ('    assert built.phrase("RED', f'{early}    assert built.phrase("RED'))
    assert gate.false("02", "Lab 02.1 can be done") == (
        "test_phrase_words_follow: expected NotImplementedError 'Lab 02.2 phrases 尚未实现', "
        "got NotImplementedError: Lab 02.3 quoted queries 尚未实现"
    )
    gate.true("02", SCAFFOLDS)


MARKERS = {
    "missing": ("@pytest.mark.lab02\n@pytest.mark.lab02_2\ndef", "def", "test_phrase_words_follow carries neither a lab's marker nor extra02"),
    "two labs": ("@pytest.mark.lab02_2\n", "@pytest.mark.lab02_2\n@pytest.mark.lab02_3\n", "test_phrase_words_follow carries lab02_2 and lab02_3, a test is counted once"),
    "counted and extra": ("@pytest.mark.lab02_2\n", "@pytest.mark.lab02_2\n@pytest.mark.extra02\n", "test_phrase_words_follow carries lab02_2 and extra02, a test is counted once"),
    "not the chapter's": ("@pytest.mark.lab02\n@pytest.mark.lab02_2\n", "@pytest.mark.lab02_2\n", "test_phrase_words_follow lacks the marker lab02"),
    "no rule": ('    """The words of a phrase stand side by side, in its order."""\n', "", "test_phrase_words_follow has no docstring that states its rule"),
    "unknown": ("@pytest.mark.lab02_2\n", "@pytest.mark.lab02_2\n@pytest.mark.lab02_9\n", "Failed: 'lab02_9' not found in `markers` configuration option"),
    "red": ('== ["lake"]', '== ["pond"]', "test_phrase_words_follow: AssertionError: assert ['lake'] == ['pond']"),
}  # fmt: skip


@pytest.mark.parametrize("case", MARKERS)
def test_tests_that_are_not_as_the_manifest_says(case, gate):
    """Every test is green, counted by exactly one lab of its chapter or an extra, and says its rule."""
    old, new, told = MARKERS[case]
    gate.change(TESTS, (old, new))
    assert gate.false("02", REFERENCE).startswith(told)


def test_counted_test_outside_of_the_focus_test(gate):
    """Counted tests stand in the focus test, which is the file that a check runs."""
    text = (gate.folder / TESTS).read_text("utf-8")
    head, mark, last = text.partition("@pytest.mark.lab02\n@pytest.mark.lab02_3\n")
    gate.write(TESTS, head)
    gate.write("labs/02/test_02_more.py", head.partition("@pytest")[0] + mark + last)
    assert gate.false("02", REFERENCE) == (
        "test_search_quoted is counted, and does not stand in tests/test_02_search.py"
    )


def test_reference_that_breaks_an_earlier_chapter(gate):
    """What a chapter's reference does to an earlier chapter's tests is told, though its own are green."""
    gate.change(SOLUTION, ("documents.pop(name, None)", "documents.pop(None, None)"))
    assert (
        gate.false("02", "every earlier chapter")
        == "test_find_nothing: AssertionError: assert ['pond'] == []"
    )
    assert gate.true("02", REFERENCE) == "4/4, 1 extra"


def test_foundation_chapter_that_is_red(gate):
    """A chapter without labs has green tests, and some at all."""
    gate.change("labs/00/test_00_workspace.py", ("assert findex", "assert not findex"))
    assert gate.false("00", "own tests are green").startswith("test_package_is_importable: AssertionError")


def test_foundation_chapter_without_tests(gate):
    """No test is no proof."""
    (gate.folder / "labs/00/test_00_workspace.py").write_text("", "utf-8")
    assert gate.false("00", "own tests are green") == "no test was found"


def test_chapter_without_tests(gate):
    """Where no test is found the reference is not green, and nothing is steady."""
    for file in (gate.folder / "labs/02").glob("test_*.py"):
        gate.write(f"labs/02/{file.name}", "")
    assert gate.false("02", REFERENCE) == "no test was found"
    assert gate.broken("02", STEADY) == "no test was found"


def test_run_that_cannot_be_trusted(gate):
    """Where pytest itself doesn't run nothing is said of the tests: BROKEN, for each claim that needs the run."""
    gate.change("starters/_project/pyproject.toml.jinja", ('"--strict-markers"', '"--no-such-option"'))
    told = "pytest did not start: "
    assert gate.broken("02", REFERENCE).startswith(told)
    assert gate.broken("02", "quiz").startswith(told)
    assert gate.broken("02", STEADY).startswith(told)
    gate.true("02", "target builds")


UNSTEADY = {
    "run again": (
        "import pathlib\n\n\ndef library()",
        "    mark = pathlib.Path(__file__).with_name('seen')\n    assert not mark.exists()\n    mark.touch()\n",
        "run again: test_search_limit: AssertionError: ",
    ),
    "order": (
        "SEEN = []\n\n\ndef library()",
        "    SEEN.append(len(SEEN))\n",
        "from the last to the first: test_phrase_words_follow: AssertionError: ",
    ),
    "directory": (
        "import pathlib\n\n\ndef library()",
        "    assert pathlib.Path('pyproject.toml').exists()\n",
        "shuffled, from another directory: test_search_limit: AssertionError: ",
    ),
}


@pytest.mark.parametrize("case", UNSTEADY)
def test_tests_that_depend_on_what_is_around_them(case, gate):
    """Tests end the same when run again, in another order and from another directory, or the claim says which."""
    above, line, told = UNSTEADY[case]
    rule = '    """The limit keeps the best, wherever their names stand."""\n'
    gate.change(TESTS, ("def library()", above), (rule, rule + line))
    if case == "order":
        rule = '    """The words of a phrase stand side by side, in its order."""\n'
        gate.change(TESTS, (rule, f"{rule}    assert SEEN\n"))
    assert gate.false("02", STEADY).startswith(told)
    gate.true("02", REFERENCE)
