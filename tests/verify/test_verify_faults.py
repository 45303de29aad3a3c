"""The claims about faults, each falsified in a lab of its own: a chapter's drills are run once a copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

LAB = "labs/02/lab.toml"
TESTS = "every counted test kills"
FROZEN = """

class _Frozen(type):
    def __setattr__(cls, name: str, value: object) -> None:
        return


class Index(_Index, metaclass=_Frozen):
    pass
"""


def faults_of(lab: str) -> str:
    return f"the faults of Lab {lab} are killed"


@pytest.fixture(scope="module")
def copies(tiny_folder, new_gate, tmp_path_factory) -> Callable[..., object]:
    """Gates before copies of the tiny course that several tests share, each doctored once."""
    made: dict[str, object] = {}

    def copy(doctor):
        if doctor.__name__ not in made:
            folder = tmp_path_factory.mktemp(doctor.__name__)
            shutil.copytree(tiny_folder, folder / "tiny")
            gate = made[doctor.__name__] = new_gate(folder / "tiny", folder / "bench")
            doctor(gate)
        return made[doctor.__name__]

    return copy


def fault_file(name: str) -> str:
    return f"labs/02/faults/{name}"


def off_target(gate) -> None:
    """Lab 02.1: killed by more than is named. 02.2: killed by nothing. 02.3: a patch of other lines."""
    gate.change(
        LAB, ('tests = ["test_search_scores", "test_search_limit"]', 'tests = ["test_search_scores"]')
    )
    gate.change(fault_file("02.2-anywhere.patch"), ("+        return self.find(text)", "+        return [name for name in self.find(text) if self._follow(name, tokenize(text))]"))  # fmt: skip
    gate.change(fault_file("02.3-quotes-dropped.patch"), ("         phrases = [", "         phrase_list = ["))
    gate.change(LAB, ("completes = [", 'overlaps = { test_gone = "it went" }\ncompletes = ['))


def left_out(gate) -> None:
    """Lab 02.1: a test that isn't there. 02.2: no portable form. 02.3: no fault at all."""
    gate.change(LAB, ('tests = ["test_search_limit"]', 'tests = ["test_search_limits"]'))
    (gate.folder / fault_file("02.2-anywhere.py")).unlink()
    text = (gate.folder / LAB).read_text("utf-8")
    head = text.partition('[[fault]]\nname = "02.3-quotes-dropped"')[0]
    gate.write(LAB, head + '[transfer]\nfaults = ["02.2-anywhere"]\n')


def not_by_assertion(gate) -> None:
    """Lab 02.1: another test crashes. 02.2: a form that can't be planted. 02.3: a crash instead of a kill."""
    gate.change(fault_file("02.1-ties-backwards.patch"), ("-53,3 +53,3", "-53,3 +53,5"), ("+        return sorted(hits", "+        if len(words) == 1:\n+            raise KeyError(words)\n+        return sorted(hits"))  # fmt: skip
    gate.change(fault_file("02.2-anywhere.py"), ("module.Index.find", "module.Index.found"))
    gate.change(
        fault_file("02.3-quotes-dropped.patch"),
        ("names = set(self.find(query))\n", "names = set(int(query))\n"),
    )
    gate.change(fault_file("02.3-quotes-dropped.py"), ("search(self", "int(query, self"))
    gate.change(
        LAB, ("completes = [", 'overlaps = { test_search_quoted = "its faults crash" }\ncompletes = [')
    )


FALSEHOODS = {
    "one test more": (off_target, "02.1", "02.1-words-once (patch) is killed by test_search_limit too, which lab.toml does not name"),
    "no test": (off_target, "02.2", "02.2-anywhere (patch) escaped: stayed green: test_phrase_words_follow"),
    "other lines": (off_target, "02.3", "02.3-quotes-dropped (patch) broken: 02.3-quotes-dropped.patch does not apply to the reference: "),
    "no such test": (left_out, "02.1", "02.1-limit-first names test_search_limits, which is no counted test of Lab 02.1"),
    "not portable": (left_out, "02.2", "none of the lab's faults has a portable form"),
    "no fault": (left_out, "02.3", "the lab has no fault"),
    "another test crashes": (not_by_assertion, "02.1", "02.1-ties-backwards (patch) makes test_search_limit red without a kill: KeyError"),
    "not planted": (not_by_assertion, "02.2", "02.2-anywhere (portable) broken: the fault 02.2-anywhere could not be planted: "),
    "a crash": (not_by_assertion, "02.3", "02.3-quotes-dropped (patch) broken: red, but not by an assertion: test_search_quoted: ValueError"),
}  # fmt: skip


@pytest.mark.parametrize("case", FALSEHOODS)
def test_fault_that_is_not_killed_as_declared(case, copies):
    """Each fault, in each form, is killed by assertions of the tests it names and by no other of its lab."""
    doctor, lab, told = FALSEHOODS[case]
    assert copies(doctor).false("02", faults_of(lab)).startswith(told)


def test_chapter_whose_faults_are_off_is_green_all_the_same(copies):
    """What is wrong with faults makes no claim about the reference false."""
    assert copies(off_target).true("02", "the reference is green") == "4/4, 1 extra"


def test_test_that_kills_nothing_alone(copies):
    """A counted test that no fault needs is named."""
    assert copies(left_out).false("02", TESTS) == "test_search_quoted kills no fault alone"


def test_test_that_is_excused(copies):
    """`overlaps` excuses a test, with its reason in lab.toml."""
    assert copies(not_by_assertion).true("02", TESTS) == "4 tests"


def test_excuse_for_no_test(copies):
    """An excuse for a test that the lab doesn't have is false."""
    assert copies(off_target).false("02", TESTS) == (
        "`overlaps` of Lab 02.3 names test_gone, which is no test of it"
    )


def test_fault_without_any_file(gate):
    """A fault that has no file can't be drilled, and its folder is not as declared."""
    for suffix in ("patch", "py"):
        (gate.folder / fault_file(f"02.2-anywhere.{suffix}")).unlink()
    assert gate.broken("02", faults_of("02.1")) == (
        "labs/02/faults has neither 02.2-anywhere.patch nor 02.2-anywhere.py."
    )
    gate.false("02", "folders hold")


def test_red_reference_solves_no_lab_to_drill(gate):
    """Faults of a lab whose reference is red are told as that."""
    gate.change("solutions/01/src/findex/index.py", ("text.casefold()", "text.lower()"))
    only_fault(gate, "01.1-split-at-spaces")
    assert gate.false("01", faults_of("01.1")).startswith(
        "01.1-split-at-spaces (patch) unsolved: Lab 01.1 is not solved: Lab 01.1 1/2"
    )


def only_fault(gate, name: str) -> None:
    """Leave chapter 01 one fault, so that its drills are few."""
    text = (gate.folder / "labs/01/lab.toml").read_text("utf-8")
    head, *faults = text.split("[[fault]]\n")
    gate.write(
        "labs/01/lab.toml", head + "".join(f"[[fault]]\n{one}" for one in faults if f'"{name}"' in one)
    )
    manifest = gate.folder / "labs/01/lab.toml"
    lines = [line for line in manifest.read_text("utf-8").splitlines() if "fault_" not in line]
    manifest.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture
def others(gate) -> Path:
    """A chapter 01 with one fault and two implementations by others: a red one, and one that can't be patched."""
    only_fault(gate, "01.2-any-word")
    text = (gate.folder / "solutions/01/src/findex/index.py").read_text("utf-8")
    for name, changed in {
        "red": text.replace("casefold", "lower"),
        "frozen": text.replace("class Index:", "class _Index:") + FROZEN,
    }.items():
        gate.write(f"tests/second/01/{name}/src/findex/index.py", changed)
    return gate


def test_implementations_by_others(others):
    """Another implementation is green, and its portable faults have the verdicts that the reference's have."""
    assert others.false("01", "implementation red is green").startswith(
        "test_tokenize_case: AssertionError: "
    )
    assert others.true("01", "implementation frozen is green") == "4/4, 0 extra"
    assert others.false("01", "verdict on frozen") == (
        "01.2-any-word is escaped, killed by none (stayed green: test_find_every_word), "
        "on the reference by test_find_every_word"
    )
