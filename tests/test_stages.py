"""Stages: the state "labs 1 to k done, the rest still starter", derived unit by unit."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from course.catalog import Chapter, Course, load_course
from course.manifest import ChapterManifest, convert_manifest
from course.stages import FileForms, StageError, derive_stage, stage_tree
from course.trees import parent_tree, practice_tree, solution_tree, starter_tree, target_tree


def chapter_of(labs: int, **completes: list[str]) -> Chapter:
    """A chapter 02 with that many labs; `completes` by lab, as `lab2=["f"]`."""
    text = {"en": "x"}
    manifest = {
        "format": 1, "id": "02", "mode": "practice", "parent": "01", "title": text, "summary": text,
        "teaching_files": ["src/p/m.py"], "focus_test": "tests/test_02_m.py", "first_step": text,
        "lab": [
            {
                "id": f"02.{k}", "marker": f"lab02_{k}", "tests": 1, "first_red": f"Lab 02.{k} x", "title": text,
                "goal": text, "completes": completes.get(f"lab{k}", []),
            }
            for k in range(1, labs + 1)
        ],
    }  # fmt: skip
    return Chapter(root=Path("nowhere"), manifest=convert_manifest(manifest, ChapterManifest, "lab.toml"))


def stages(starter: str, target: str, chapter: Chapter, **between: str) -> list[str]:
    """The file's text after each lab; `between` as `lab1="def f(): ..."`."""
    forms = FileForms(
        path="src/p/m.py",
        starter=dedent(starter),
        target=dedent(target),
        between={int(lab[3:]) - 1: dedent(text) for lab, text in between.items()},
    )
    texts = [derive_stage(forms, chapter, index) for index in range(len(chapter.manifest.lab))]
    for text in texts:
        ast.parse(text)
    return texts


STARTER = '''\
"""The module."""

from __future__ import annotations


def one() -> int:
    # TODO(02.1): give one.
    raise NotImplementedError("Lab 02.1 x")


@deco
def two(text: str) -> str:
    """Doc of two."""
    raise NotImplementedError("Lab 02.2 x")


class Three:
    """Doc of three."""

    limit = 3

    def first(self) -> int:
        raise NotImplementedError("Lab 02.2 x")

    def second(self) -> int:
        raise NotImplementedError('Lab 02.3 x')
'''
TARGET = '''\
"""The module."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_WORD = re.compile(
    r"""
    [a-z]+
    """,
    re.VERBOSE,
)


def one() -> int:
    return len(_counted([1]))


def _counted(items: Iterable[int]) -> list[int]:
    """Helper of one."""
    return list(items)


# Two needs a comment.
@deco
def two(text: str) -> str:
    """Doc of two."""
    return json.dumps(_WORD.findall(text))


class Three:
    """Doc of three."""

    limit = 3

    def __init__(self) -> None:
        self._kept: Mapping[str, int] = {}

    def first(self) -> int:
        return len(self._kept)

    def second(self) -> int:
        return self._deep().value

    def _deep(self) -> _Deep:
        return _Deep(2)


class _Deep:
    def __init__(self, value: int) -> None:
        self.value = value
'''


def test_unit_takes_its_target_form_with_the_lab_its_scaffold_names():
    """A definition is the starter's before its lab, and the target's from it on."""
    first, second, third = stages(STARTER, TARGET, chapter_of(3))
    assert "return len(_counted([1]))" in first
    assert 'raise NotImplementedError("Lab 02.2 x")' in first
    assert "return json.dumps" not in first
    assert "return json.dumps" in second
    assert "raise NotImplementedError('Lab 02.3 x')" in second
    assert "NotImplementedError" not in third


def test_helper_comes_with_the_first_unit_that_mentions_it():
    """A private helper, and what it mentions in turn, is there as soon as a finished unit needs it, not before."""
    first, second, third = stages(STARTER, TARGET, chapter_of(3))
    assert "def _counted" in first
    assert "_WORD" not in first
    assert "_WORD = re.compile(" in second
    assert "_deep" not in second
    assert "class _Deep:" in third


def test_constructor_comes_with_its_class():
    """A class gets its new `__init__` as soon as one of its members is finished."""
    first, second, _ = stages(STARTER, TARGET, chapter_of(3))
    assert "_kept" not in first
    assert "self._kept: Mapping[str, int] = {}" in second


def test_imports_are_those_that_are_used():
    """An import is there once a unit uses it, name by name."""
    first, second, _ = stages(STARTER, TARGET, chapter_of(3))
    assert "import json" not in first
    assert "from collections.abc import Iterable\n" in first
    assert "import json\nimport re\n" in second
    assert "from collections.abc import Iterable, Mapping\n" in second
    assert all("from __future__ import annotations\n" in text for text in (first, second))


def test_comments_and_decorators_come_with_their_definition():
    """What stands before a definition in the target comes and goes with it."""
    first, second, _ = stages(STARTER, TARGET, chapter_of(3))
    assert "# Two needs a comment." not in first
    assert "# Two needs a comment.\n@deco\ndef two" in second


def test_last_stage_is_the_target():
    """With all labs done nothing of the starter is left: the text is the target's, byte for byte."""
    assert stages(STARTER, TARGET, chapter_of(3))[-1] == TARGET


def test_shared_definition_has_its_form_between():
    """A definition of two labs has its intermediate form from the first on, and is completed by the second."""
    starter = 'def f(a):\n    raise NotImplementedError("Lab 02.1 x")\n'
    target = "def f(a):\n    return _deep(a)\n\n\ndef _deep(a):\n    return a\n"
    between = (
        'import re\n\n\ndef f(a):\n    if a:\n        raise NotImplementedError("Lab 02.2 x")\n    return 0\n'
    )
    first, second = stages(starter, target, chapter_of(2, lab2=["f"]), lab1=between)
    assert "return 0" in first
    assert "_deep" not in first
    assert second == target


def test_shared_member_has_its_form_between():
    """The same holds for one member of a class: the form's file holds just that member."""
    starter = 'class A:\n    def f(self):\n        raise NotImplementedError("Lab 02.1 x")\n\n    def g(self):\n        return 1\n'
    target = "class A:\n    def f(self):\n        return 2\n\n    def g(self):\n        return 1\n"
    between = 'class A:\n    """Only the form of f."""\n\n    def f(self):\n        return self.g()\n'
    first, second, third = stages(starter, target, chapter_of(3, lab3=["A.f"]), lab1=between)
    assert first == second == target.replace("return 2", "return self.g()")
    assert third == target


def test_completes_wins_over_the_scaffold():
    """lab.toml's `completes` says when a definition is finished, whatever lab its scaffold names."""
    starter = 'def f():\n    raise NotImplementedError("Lab 02.1 x")\n'
    first, second = stages(starter, "def f():\n    return 1\n", chapter_of(2, lab2=["f"]))
    assert first == starter
    assert second == "def f():\n    return 1\n"


def test_unit_without_scaffold_changes_with_the_first_lab():
    """A unit that the chapter changes without a scaffold takes its target form at once; an equal one stays."""
    starter = "LIMIT = 1\nSAME = 2\n\n\ndef f():\n    raise NotImplementedError('Lab 02.2 x')\n"
    target = "LIMIT = 10\nSAME = 2\n\n\ndef f():\n    return LIMIT\n"
    first, _ = stages(starter, target, chapter_of(2))
    assert first.startswith("LIMIT = 10\nSAME = 2\n")
    assert "raise NotImplementedError" in first


def test_overloads_are_finished_together_with_their_definition():
    """Overloads stand in both forms; only the one with the body has a scaffold, and only it changes."""
    signatures = "@overload\ndef f(a: int) -> int: ...\n@overload\ndef f(a: str) -> str: ...\n"
    starter = signatures + 'def f(a):\n    raise NotImplementedError("Lab 02.2 x")\n'
    first, second = stages(starter, signatures + "def f(a):\n    return a\n", chapter_of(2))
    assert first == starter
    assert second == signatures + "def f(a):\n    return a\n"


def test_type_checking_block_stands_once():
    """An `if TYPE_CHECKING:` block that the chapter extends is replaced, not doubled."""
    starter = (
        "if TYPE_CHECKING:\n    from a import b\n\n\ndef f():\n    raise NotImplementedError('Lab 02.2 x')\n"
    )
    target = "if TYPE_CHECKING:\n    from a import b, c\n\n\ndef f():\n    return 1\n"
    first, _ = stages(starter, target, chapter_of(2))
    assert first.count("TYPE_CHECKING") == 1
    assert "from a import b, c\n" in first


def test_nested_class_and_multi_line_strings_are_whole():
    """A nested class is one unit; strings over several lines keep every line."""
    starter = 'class A:\n    class In:\n        x = 1\n\n    def f(self):\n        raise NotImplementedError("Lab 02.2 x")\n'
    target = (
        'class A:\n    class In:\n        x = 1\n\n    def f(self):\n        return """\nclass B:\n    pass\n"""\n\n'
        "    class New:\n        y = 2\n"
    )
    first, second = stages(starter, target, chapter_of(2))
    assert first == starter
    assert '"""\nclass B:\n    pass\n"""' in second


def test_starter_that_is_no_python_is_told():
    """A file that can't be parsed is a StageError that names chapter and file."""
    with pytest.raises(StageError, match=r"Chapter 02: src/p/m.py can't be parsed"):
        stages("def f(:\n", "x = 1\n", chapter_of(1))


def test_tiny_course_ends_each_chapter_with_its_target(tiny_course: Course):
    """The stage of a chapter's last lab is the target's tree; the first differs from it and from the starter."""
    for chapter in tiny_course.practice_chapters:
        labs = [lab.id for lab in chapter.manifest.lab]
        assert stage_tree(tiny_course, chapter, labs[-1]) == target_tree(tiny_course, chapter)
        first = stage_tree(tiny_course, chapter, labs[0])
        assert first not in (target_tree(tiny_course, chapter), practice_tree(tiny_course, chapter))


def test_tiny_course_derives_its_targets_from_units(tiny_course: Course):
    """Also without the short cut for the last lab, the units of a finished chapter are the target."""
    for chapter in tiny_course.practice_chapters:
        for path, data in solution_tree(chapter).items():
            starter = starter_tree(chapter).get(path) or parent_tree(tiny_course, chapter)[path]
            forms = FileForms(path=path, starter=starter.decode(), target=data.decode(), between={})
            assert derive_stage(forms, chapter, len(chapter.manifest.lab) - 1) == data.decode()


def test_stage_form_of_a_crlf_checkout_is_the_same(tiny, tiny_course: Course):
    """Line ends of a checkout never reach a stage."""
    for file in (tiny / "solutions").rglob("*.py"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    course = load_course(tiny)
    for lab in ("02.1", "02.2"):
        chapter = course.chapter("02")
        assert stage_tree(course, chapter, lab) == stage_tree(tiny_course, tiny_course.chapter("02"), lab)
