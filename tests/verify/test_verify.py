"""The gate as its authors use it: one line a claim, three kinds of ends; and how a claim is judged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from course.errors import CourseError, EnvironmentFault
from course.manifest import ManifestError
from course.outcome import Status
from course.verify.claim import Claim, ClaimBroken, ClaimFalse, counted, judge_claim, judge_claims

HANDOUT = "labs/00/handout.en.md"
# What the gate says of chapter 01 as it stands.
WHOLE = """\
true   chapter 01: its folders hold what lab.toml declares · 13 files
true   chapter 01: the target builds · 2 modules
true   chapter 01: the starter builds (en) · 2 modules
true   chapter 01: the starter builds (zh) · 2 modules
true   chapter 01: the starter holds no answer · 1 file, 9 answer lines and 5 bodies looked for
true   chapter 01: a practice made twice is the same, one commit after its parent (en) · 14 files, 2 commits
true   chapter 01: a generated practice hides every answer (en) · 14 files read that no earlier checkpoint has
true   chapter 01: a practice made twice is the same, one commit after its parent (zh) · 14 files, 2 commits
true   chapter 01: a generated practice hides every answer (zh) · 14 files read that no earlier checkpoint has
true   chapter 01: a learner's edition hides every answer · 38 files, without the starter of 02
true   chapter 01: the first red is exact · Lab 01.1 0/2 · first red: Lab 01.1 tokenize 尚未实现
true   chapter 01: in the starter every lab is at a scaffold · 4 tests red
true   chapter 01: Lab 01.1 can be done alone, in its turn · Lab 01.1 2/2
true   chapter 01: Lab 01.2 can be done alone, in its turn · Lab 01.1 2/2 Lab 01.2 2/2
true   chapter 01: the reference is green, counts and markers as in the manifest · 4/4, 0 extra
true   chapter 01: with the reference every earlier chapter is green too · 5 tests through chapter 01
true   chapter 01: the faults of Lab 01.1 are killed by exactly the tests they name · 2 faults, 1 with a portable form
true   chapter 01: the faults of Lab 01.2 are killed by exactly the tests they name · 2 faults, 2 with a portable form
true   chapter 01: every counted test kills a fault that no other of its lab kills · 4 tests
true   chapter 01: tests give the same again, in any order, and from elsewhere · 4 tests, 3 runs more
true   chapter 01: the acceptance lines show every lab · 8 lines
true   chapter 01: hints hold no answer · 6 hints
true   chapter 01: every quiz answer is shown by a test · 2 questions
true   chapter 01: the handouts agree · en 15 lines and zh 15 lines
true   chapter 01: every command of the handout runs · 3 commands

25 claims: 25 true, 0 false, 0 broken
"""


def test_sound_chapter_is_true_in_every_claim(call, tiny_folder):
    """Every claim about a practice chapter that nobody doctored is true, with what was counted: status 0."""
    ran = call("--course", tiny_folder, "verify", "01")
    assert ran.out == WHOLE
    assert (ran.status, ran.err) == (0, "")


def test_falsehood_ends_with_1_and_hides_no_other_claim(call, gate):
    """A false claim is told with what was found, and every other claim all the same: status 1."""
    gate.change(HANDOUT, ("`findex`", "[`findex`](../README.md)"))
    gate.change("labs/00/test_00_workspace.py", ("assert findex", "assert not findex"))
    ran = call("--course", gate.folder, "verify", "00")
    assert ran.out.splitlines() == [
        "true   chapter 00: its folders hold what lab.toml declares · 4 files",
        "true   chapter 00: the target builds · 1 module",
        "FALSE  chapter 00: its own tests are green · test_package_is_importable: AssertionError: assert not "
        "'A small text-search index, rebuilt chapter by chapter.'",
        "FALSE  chapter 00: the handouts agree · handout.en.md links to ../README.md, which is not there",
        "true   chapter 00: every command of the handout runs · 0 commands",
        "",
        "5 claims: 3 true, 2 false, 0 broken",
    ]
    assert ran.status == 1


def test_claims_that_cannot_be_checked_end_with_3(call, gate):
    """What can't be checked is BROKEN, never true, and outranks a falsehood: status 3; the rest is still told."""
    gate.write("starters/_project/README.md.jinja", "{% if %}")
    gate.change(HANDOUT, ("# Chapter", "## Chapter"))
    ran = call("--course", gate.folder, "verify", "00", "--jobs", "1")
    signs = [line.split()[0] for line in ran.out.splitlines()[:5]]
    assert signs == ["true", "BROKEN", "BROKEN", "FALSE", "true"]
    assert "chapter 00: the target builds · The project template" in ran.out.splitlines()[1]
    assert ran.out.endswith("5 claims: 2 true, 1 false, 2 broken\n")
    assert ran.status == 3


def test_verdicts_as_json(call, gate):
    """`--json` is one document: per claim chapter, sentence, status, remark and seconds."""
    gate.change(HANDOUT, ("# Chapter", "## Chapter"))
    ran = call("--course", gate.folder, "verify", "00", "--json")
    document = ran.document
    assert (ran.status, document["format"], document["kind"]) == (1, 1, "verify")
    assert [claim["status"] for claim in document["claims"]] == ["true", "true", "true", "false", "true"]
    told = document["claims"][3]
    assert told.pop("seconds") >= 0
    assert told == {
        "chapter": "00",
        "claim": "the handouts agree",
        "status": "false",
        "remark": "heading levels differ between en and zh: '##' against '#'",
    }


@pytest.mark.parametrize("chosen", [[], ["00"]], ids=["the whole course", "a chapter"])
def test_bad_manifest_is_a_false_claim(chosen, call, gate):
    """For the gate a manifest that can't be used is the author's falsehood: file and key, status 1."""
    gate.change("labs/02/lab.toml", ('parent = "01"', 'parent = "00"'))
    ran = call("--course", gate.folder, "verify", *chosen)
    assert ran.out.splitlines()[0] == (
        "FALSE  course: every manifest can be used · labs/02/lab.toml: `parent`: "
        "expected \"01\", the chapter before it, got '00'"
    )
    assert ran.out.endswith("1 claim: 0 true, 1 false, 0 broken\n")
    assert ran.status == 1
    as_json = call("--course", gate.folder, "verify", *chosen, "--json")
    assert (as_json.status, as_json.document["claims"][0]["status"]) == (1, "false")


def test_other_commands_break_on_a_bad_manifest(call, gate):
    """For every other command the same manifest is a broken course: status 3."""
    gate.change("labs/02/lab.toml", ('parent = "01"', 'parent = "00"'))
    assert call("--course", gate.folder, "list").status == 3


def test_unknown_chapter_is_wrong_use(call, tiny_folder):
    """A chapter that isn't there is no claim: status 2, nothing judged."""
    ran = call("--course", tiny_folder, "verify", "00", "07")
    assert (ran.status, ran.out) == (2, "")


ENDS = {
    "true": (None, Status.PASSED, "2 tests"),
    "false": (ClaimFalse("it is red"), Status.FAILED, "it is red"),
    "manifest": (ManifestError("a.toml", "x", "expected y"), Status.FAILED, "a.toml: `x`: expected y"),
    "untrusted": (ClaimBroken("pytest itself failed"), Status.BROKEN, "pytest itself failed"),
    "environment": (EnvironmentFault("git was not found."), Status.BROKEN, "git was not found."),
    "course": (CourseError("no template."), Status.BROKEN, "no template."),
    "anything": (KeyError("x"), Status.BROKEN, "KeyError: 'x'"),
}


def claim_ending(error: Exception | None) -> Claim:
    def prove() -> str:
        if error is not None:
            raise error
        return "2 tests"

    return Claim(chapter="02", sentence="it holds", prove=prove)


@pytest.mark.parametrize("case", ENDS)
def test_judging_a_claim(case):
    """A claim is false where it says so itself or a manifest is bad; whatever else stops it makes it BROKEN."""
    error, status, remark = ENDS[case]
    verdict = judge_claim(claim_ending(error))
    assert (verdict.status, verdict.remark) == (status, remark)
    assert (verdict.chapter, verdict.sentence) == ("02", "it holds")


def test_verdicts_come_in_the_order_of_the_claims():
    """On however many workers, verdicts come in the claims' order, those after a falsehood too."""
    claims = [claim_ending(error) for error, _, _ in ENDS.values()] * 3
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(judge_claims(claims, pool))
    assert [verdict.status for verdict in verdicts] == [status for _, status, _ in ENDS.values()] * 3


def test_numbers_have_their_nouns():
    """One is one: no remark says `1 tests`."""
    assert [counted(number, "test") for number in (0, 1, 2)] == ["0 tests", "1 test", "2 tests"]


def test_shared_work_is_done_once_and_fails_for_all(gate, tmp_path):
    """What several claims need is made once; where that failed, each hears the same, and half of it is gone."""
    made: list[Path] = []

    def half(path: Path) -> None:
        made.append(path)
        path.mkdir(parents=True)
        raise CourseError("no room.")

    for _ in range(2):
        with pytest.raises(CourseError, match="no room"):
            gate.bench.once("thing", half)
    assert len(made) == 1
    assert not made[0].exists()


def test_long_claims_begin_first():
    """Whatever stands before them: no worker is left alone with a long claim in the end."""
    begun: list[str] = []

    def claim(name: str, *, long: bool) -> Claim:
        def prove() -> str:
            begun.append(name)
            return ""

        return Claim(chapter="", sentence=name, prove=prove, long=long)

    claims = [claim("a", long=False), claim("b", long=True), claim("c", long=False), claim("d", long=True)]
    with ThreadPoolExecutor(1) as pool:
        assert [verdict.sentence for verdict in judge_claims(claims, pool)] == ["a", "b", "c", "d"]
    assert begun == ["b", "d", "a", "c"]
