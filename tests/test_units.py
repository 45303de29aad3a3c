"""Units: how a Python file is cut into statements, each with its exact text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course.units import classes_of, split_units

ROOT = Path(__file__).resolve().parent.parent
PIECES = [
    "x = 1\n",
    "count: int = 1\n",
    "a = 1; b = 2\n",
    "total = 1 + \\\n    2\n",
    "import os, sys\n",
    "from a import (\n    b,  # why\n    c,\n)\n",
    "if TYPE_CHECKING:\n    from a import b\nelse:\n    b = None\n",
    "try:\n    import tomllib\nexcept ImportError:\n    tomllib = None\n",
    'TEXT = """first\n\ndef not_a_function():\n    pass\n"""\n',
    'ODD = "form\x0cfeed, next\x85line, \u2028separator, \x1cfile"\n',
    "def f(a, *, b=(1,\n    2)):\n    return a\n\n    # indented, at the end\n",
    '@first\n@second(\n    1,\n)\nasync def g() -> None:\n    """Doc.\n\n    More.\n    """\n',
    "@overload\ndef h(a: int) -> int: ...\n@overload\ndef h(a: str) -> str: ...\ndef h(a): return a\n",
    "class One: pass\n",
    "class Two: x = 1; y = 2\n",
    'class Three:\n    """Doc."""\n\n    x = 1\n\n    # of the property\n    @property\n    def p(self): return 1\n'
    "    @p.setter\n    def p(self, v): ...\n\n    class Inner:\n        def q(self): ...\n",
    "@dataclass(\n    frozen=True,\n)\nclass Four(Three):\n    a: int\n    b: str = '''\n'''\n",
    "class Five:\n    # only a comment before\n    def m(self):\n        pass\n    # and one after\n",
]
GAPS = ["", "\n", "\n\n\n", "# a comment\n", "\n# a comment\n\n", "\x0c\n"]

sources = st.lists(st.tuples(st.sampled_from(GAPS), st.sampled_from(PIECES)), max_size=8).map(
    lambda parts: "".join(gap + piece for gap, piece in parts)
)
endings = st.sampled_from(["", "\n", "# the end\n", "# the end"])
classes = st.sets(st.sampled_from(["One", "Two", "Three", "Four", "Five"]))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=sources, ending=endings, opened=classes, line_end=st.sampled_from(["\n", "\r\n"]))
def test_joined_units_give_the_file_back(source, ending, opened, line_end):
    """Whatever a file holds, its units joined are the file, byte for byte."""
    text = (source + ending).replace("\n", line_end)
    assert "".join(unit.text for unit in split_units(text, opened)) == text


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=sources, opened=classes)
def test_units_hold_whole_statements_under_distinct_keys(source, opened):
    """A unit's text is a whole statement with what stands before it, and no two units share a key."""
    units = split_units(source, opened)
    assert len({unit.key for unit in units}) == len(units)
    for unit in split_units(source):
        ast.parse(unit.text)


def test_own_sources_are_given_back():
    """The law holds for every file of this repository's engine and of its courses."""
    files = [file for name in ("course", "starters", "solutions") for file in (ROOT / name).rglob("*.py")]
    assert len(files) > 20
    for file in files:
        text = file.read_text("utf-8")
        assert "".join(unit.text for unit in split_units(text, classes_of(text))) == text, file


def keys(source: str, *opened: str) -> list[str]:
    return [unit.key for unit in split_units(source, opened)]


def test_unit_takes_decorators_and_comments_before_it():
    """What stands before a statement, comments and blank lines, belongs to it; so do its decorators."""
    source = "import a\n\n# why\n@deco\n@more(1)\ndef f(): ...\n# the end\n"
    units = split_units(source)
    assert [unit.text for unit in units] == [
        "import a\n",
        "\n# why\n@deco\n@more(1)\ndef f(): ...\n",
        "# the end\n",
    ]
    assert [unit.key for unit in units] == ["import a", "f", "(end of file)"]


def test_opened_class_gives_head_and_members():
    """An opened class is its head with the docstring, then each member; a nested class is one member."""
    source = (
        'class A(B):\n    """Doc."""\n\n    x: int = 1\n\n    @property\n    def p(self): ...\n'
        "    @p.setter\n    def p(self, v): ...\n\n    class In:\n        def q(self): ...\n\n\ny = 2\n"
    )
    assert keys(source, "A") == ["A", "A.x", "A.p", "A.p#2", "A.In", "y"]
    assert split_units(source, ["A"])[0].text == 'class A(B):\n    """Doc."""\n'
    assert keys(source) == ["A", "y"]


def test_head_ends_before_its_first_members_decorators():
    """Without a docstring the head is the class's own lines; decorators belong to the member that they adorn."""
    head, member = split_units(
        "class A:\n    @property\n    # why\n    @cached\n    def p(self): ...\n", ["A"]
    )
    assert (head.text, member.key) == ("class A:\n", "A.p")


def test_overloads_are_numbered():
    """The same name more than once gets numbered keys, in the file's order."""
    source = "@overload\ndef f(a: int): ...\n@overload\ndef f(a: str): ...\ndef f(a): ...\n"
    assert keys(source) == ["f", "f#2", "f#3"]


def test_if_block_is_named_by_its_condition():
    """A block's key is its condition, not its body, so that two forms of the block are one unit."""
    first = keys("if TYPE_CHECKING:\n    from a import b\n")
    assert first == keys("if TYPE_CHECKING:\n    from a import c\n") == ["if TYPE_CHECKING"]


@pytest.mark.parametrize("sign", ["\x0c", "\x1c", "\x85", "\u2028"])
def test_unusual_line_separators_cut_nothing(sign):
    """Only line ends as Python knows them separate lines; other separators may stand in a string."""
    units = split_units(f'a = "one{sign}two"\nb = 2\nc = 3\n')
    assert [(unit.key, unit.text) for unit in units[1:]] == [("b", "b = 2\n"), ("c", "c = 3\n")]


def test_mentions_are_names_attributes_and_quoted_names():
    """A unit mentions what it calls, what it reads as an attribute, and names that it quotes."""
    unit = split_units('def f(x: Kind) -> None:\n    self._helper(getattr(x, "quoted"), *more)\n')[0]
    assert {"Kind", "_helper", "quoted", "more", "getattr"} <= unit.mentions
    assert "f" not in unit.mentions
