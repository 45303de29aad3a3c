"""`course record`, and what it is made of: fresh runs, and evidence that no kill and no crowd can spoil."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from course.evidence import Evidence
from course.practice import find_practice

Program = Callable[..., Any]
Done = Callable[[Path, str], None]
FILES = ["src/findex/index.py"]


def evidence_of(practice: Path) -> Evidence:
    found = find_practice(practice)
    assert found is not None
    return Evidence(found)


def by_hand(practice: Path, fault: str, *kinds: str) -> None:
    """Evidence as `drill --try` leaves it."""
    for kind in kinds:
        evidence_of(practice).add(kind, FILES, fault=fault, lab="02.2", passed=0, tests=1, test=None)


def test_unsolved_practice_says_what_is_missing(call: Program, practice: Path) -> None:
    """What was shown is printed; each other line is said to be missing, with the command that shows it."""
    ran = call("record", cwd=practice)
    lines = ran.out.splitlines()
    assert ran.status == 1
    assert lines[0] == "fresh build: pass"
    assert lines[1] == "first red: Lab 02.1 0/2, exact scaffold error"
    assert lines[2].startswith("missing: Lab 02.1: 2/2 (Lab 02.1 0/2")
    assert sum(line.startswith("missing: ") for line in lines) == 7


def test_complete_record_has_the_acceptance_lines_in_order(call: Program, practice: Path, done: Done) -> None:
    """With everything shown the record is the manifest's lines, and status 0."""
    done(practice, "02.3")
    by_hand(practice, "02.2-anywhere", "fault_injected", "fault_restored")
    ran = call("record", cwd=practice)
    assert ran.status == 0, ran.out
    assert ran.out.splitlines()[:9] == [
        "fresh build: pass",
        "first red: Lab 02.1 0/2, exact scaffold error",
        "Lab 02.1: 2/2",
        "Lab 02.2: 1/1",
        "Lab 02.3: 1/1",
        "fault injected: Lab 02.2 detects scattered words",
        "fault restored: Lab 02.2 1/1",
        "chapter total: 4/4",
        "through Chapter 02: all pass",
    ]


def test_restored_without_injected_is_missing(call: Program, practice: Path, done: Done) -> None:
    """A restoring that nothing was injected before shows nothing."""
    done(practice, "02.3")
    by_hand(practice, "02.2-anywhere", "fault_restored")
    assert "missing: fault restored" in call("record", cwd=practice).out


def test_evidence_of_an_old_green_fills_no_line(call: Program, practice: Path, done: Done) -> None:
    """Labs are run afresh: yesterday's green is no line of today's record."""
    done(practice, "02.3")
    assert call("check", cwd=practice).status == 0
    done(practice, "02.1")
    assert "missing: Lab 02.2: 1/1" in call("record", cwd=practice).out


def test_json_says_by_what_each_line_was_shown(call: Program, practice: Path) -> None:
    """The document has each line with whether and by what it was shown."""
    document = call("record", "--json", cwd=practice).document
    assert document["complete"] is False
    assert document["lines"][0] == {
        "line": "fresh build: pass",
        "check": "build",
        "shown": True,
        "by": "2 modules compiled and imported",
    }


def test_red_in_an_earlier_chapter_is_told(call: Program, practice: Path, done: Done) -> None:
    """`through Chapter 02` is not shown where an earlier chapter's test is red."""
    done(practice, "02.3")
    file = practice / FILES[0]
    file.write_text(file.read_text("utf-8").replace("text.casefold()", "text"), "utf-8")
    assert "missing: through Chapter 02" in call("record", cwd=practice).out


def test_torn_and_foreign_lines_are_passed_over(practice: Path) -> None:
    """A line torn by a kill is closed by the next writer; nothing else is lost."""
    evidence = evidence_of(practice)
    evidence.add("check", FILES, lab="02.1")
    with evidence.file.open("ab") as file:
        file.write(b'{"format": 1, "kind": "che')
    evidence.add("check", FILES, lab="02.2")
    with evidence.file.open("ab") as file:
        file.write(b"[1]\n\xff\n")
    assert [entry["lab"] for entry in evidence.entries()] == ["02.1", "02.2"]


def _write_many(practice: Path, name: str) -> None:
    evidence = evidence_of(practice)
    for number in range(40):
        evidence.add("check", FILES, lab=name, number=number, filler="x" * 3000)


def test_concurrent_writers_lose_nothing(practice: Path) -> None:
    """Evidence of four processes at once is all there, each line whole."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(practice, str(n))) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
    lines = (practice / ".course" / "evidence.jsonl").read_text("utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == 160


@pytest.fixture
def first(call: Program, tiny_folder: Path, tmp_path: Path) -> Path:
    """A practice of chapter 01, as it came."""
    folder = tmp_path / "first"
    assert call("--course", tiny_folder, "practice", "01", folder).status == 0
    return folder


def solve_first(practice: Path, tiny_folder: Path, mark: str = "") -> None:
    text = (tiny_folder / "solutions" / "01" / FILES[0]).read_text("utf-8")
    (practice / FILES[0]).write_text(text.replace("import re\n", f"import re{mark}\n", 1), "utf-8")


def test_unproven_work_is_not_carried_on(
    call: Program, tiny_folder: Path, first: Path, tmp_path: Path
) -> None:
    """`practice --from` says what is red and offers the reference; nothing is made."""
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "next", "--from", first)
    assert ran.status == 1
    assert "is red" in ran.err
    assert "start from the reference" in ran.err
    assert not (tmp_path / "next").exists()


def test_own_work_is_carried_on(
    call: Program, tiny_folder: Path, first: Path, tmp_path: Path, git: Callable[..., list[str]]
) -> None:
    """Proven work stands in the next practice, on top of its starter, and the first red is as ever."""
    solve_first(first, tiny_folder, "  # mine")
    target = tmp_path / "next"
    assert call("--course", tiny_folder, "practice", "02", target, "--from", first).status == 0
    assert "import re  # mine" in (target / FILES[0]).read_text("utf-8")
    assert git(target, "log", "--format=%s")[:2] == ["Chapter 01, your own, carried on", "Chapter 02 starter"]
    assert git(target, "status", "--porcelain") == []
    assert "Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现" in call("check", cwd=target).out


def test_weakened_tests_prove_nothing(call: Program, tiny_folder: Path, first: Path, tmp_path: Path) -> None:
    """The run that proves is made with the course's own tests."""
    for test in (first / "tests").glob("test_01*.py"):
        test.write_text("def test_nothing():\n    assert True\n", "utf-8")
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "next", "--from", first)
    assert ran.status == 1


def test_work_of_the_wrong_chapter_is_refused(
    call: Program, tiny_folder: Path, practice: Path, tmp_path: Path
) -> None:
    """Only the chapter before can be carried on."""
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "next", "--from", practice)
    assert ran.status == 2
    assert "chapter 02 follows chapter 01" in ran.err


def test_carried_lines_that_clash_with_the_starter_are_refused(
    call: Program, tiny_folder: Path, first: Path, tmp_path: Path
) -> None:
    """A file that grows can only be carried on where its additions still fit."""
    text = '''"""Everything in one function."""
class Index:
    def __init__(self): self.d = {}
    def add(self, name, text): self.d[name] = set(tokenize(text))
    def find(self, query):
        w = set(tokenize(query))
        return sorted(n for n, t in self.d.items() if w and w <= t)
def tokenize(text):
    import re; return re.findall(r"\\w+", text.casefold())
'''
    (first / FILES[0]).write_text(text, "utf-8")
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "next", "--from", first)
    assert ran.status in (1, 2), ran.out + ran.err
    assert not (tmp_path / "next").exists()


def test_file_that_cannot_be_collected_is_no_green(
    call: Program, tiny_folder: Path, first: Path, practice: Path, tmp_path: Path, done: Done
) -> None:
    """Code that does not even import is carried nowhere, and no line of the record says that all pass."""
    solve_first(first, tiny_folder)
    for file in (first / FILES[0], practice / FILES[0]):
        file.write_text(file.read_text("utf-8") + "\ndef (\n", "utf-8")
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "next", "--from", first)
    assert ran.status == 1, ran.out
    assert "SyntaxError" in ran.err
    assert not (tmp_path / "next").exists()
    assert "missing: through Chapter 02" in call("record", cwd=practice).out


def test_missing_work_is_not_replaced_by_the_reference(
    call: Program, tiny_folder: Path, first: Path, tmp_path: Path
) -> None:
    """A teaching file that is gone is named; the reference never stands in for it."""
    (first / FILES[0]).unlink()
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "next", "--from", first)
    assert ran.status == 1, ran.out
    assert f"{FILES[0]} is missing" in ran.err
    assert not (tmp_path / "next").exists()


def test_record_is_made_with_the_courses_own_tests(call: Program, practice: Path) -> None:
    """Tests that were emptied in the practice show nothing: the record runs those that the starter came with."""
    for test in (practice / "tests").glob("test_*.py"):
        test.write_text("def test_nothing():\n    assert True\n", "utf-8")
    ran = call("record", cwd=practice)
    assert "missing: Lab 02.1: 2/2 (Lab 02.1 0/2 · first red: Lab 02.1 ranking" in ran.out
    assert "missing: through Chapter 02" in ran.out


def test_foreign_evidence_breaks_no_record(call: Program, practice: Path) -> None:
    """A line of evidence without a kind or a time is passed over."""
    (practice / ".course" / "evidence.jsonl").write_text('{"format": 1, "fault": "02.2-anywhere"}\n', "utf-8")
    ran = call("record", cwd=practice)
    assert ran.status == 1
    assert "missing: fault injected" in ran.out
