"""`course hint`: one hint at a time, from general to specific, and a memory that no damage stops."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

GENERAL = "What does the index have to know now that it didn't need for `find`?"
SPECIFIC = "One of the two sorting keys falls, the other one rises. And when does the limit apply?"


def shown_text(out: str) -> str:
    """The hint in what the command printed."""
    return out.splitlines()[2]


def test_hints_come_one_by_one_and_the_last_is_repeated(practice, course):
    """Without LAB it is the current lab; at the last hint it says so, and repeats it."""
    answers = [course("hint", cwd=practice) for _ in range(4)]
    assert [answer.status for answer in answers] == [0, 0, 0, 0]
    assert answers[0].out.splitlines()[:3] == ["Lab 02.1 · ranking", "Hint 1 of 3", GENERAL]
    assert shown_text(answers[2].out) == shown_text(answers[3].out) == SPECIFIC
    assert "This was the last hint there is." in answers[2].out
    assert "This is the last hint there is, shown before." in answers[3].out
    assert "last hint" not in answers[1].out


def test_next_command_runs_as_it_stands(practice, course, program):
    """The printed command shows the next hint when a shell runs it."""
    told = course("hint", cwd=practice).out.splitlines()[-1]
    again = program(["sh", "-c", told.removeprefix("The next one: ")], cwd=practice)
    assert again.out.splitlines()[1] == "Hint 2 of 3"


def test_next_command_from_elsewhere_keeps_the_options(practice, course, program, tmp_path):
    """With -C and --lang the printed command has them too, and runs from where the user is."""
    told = course("-C", practice, "--lang", "zh", "hint", "02.2", cwd=tmp_path).out.splitlines()[-1]
    again = program(["sh", "-c", told.removeprefix("The next one: ")], cwd=tmp_path)
    assert again.out.splitlines()[:2] == ["Lab 02.2 · 短语", "Hint 2 of 3"]


def test_current_lab_is_the_first_that_a_run_finds_red(practice, call, done):
    """What is solved is not hinted at."""
    done(practice, "02.1")
    assert call("hint", cwd=practice).out.startswith("Lab 02.2 · phrases\nHint 1 of 3\n")


def test_current_lab_is_found_where_a_later_one_ends_the_process(practice, call, done):
    """A lab that kills the run is judged alone, and takes no other one with it."""
    done(practice, "02.1")
    file = practice / "src/findex/index.py"
    scaffold = 'raise NotImplementedError("Lab 02.2 phrases 尚未实现")'
    text = file.read_text("utf-8")
    assert scaffold in text
    file.write_text(text.replace(scaffold, "import os; os._exit(0)"), "utf-8")
    assert call("hint", cwd=practice).out.startswith("Lab 02.2 ")


def test_all_green_says_that_nothing_is_left(practice, call, done):
    """A finished chapter has no current lab."""
    done(practice, "02.3")
    answer = call("hint", cwd=practice)
    assert (answer.status, answer.out.splitlines()[0]) == (
        0,
        "Every lab of chapter 02 is green: there is nothing left to hint at.",
    )
    assert call("hint", "--json", cwd=practice).document["lab"] is None


def test_named_lab_needs_no_run(practice, call):
    """LAB may be any lab of the practice's chapter, its leading zero left out."""
    (practice / "src/findex/index.py").write_text("import os; os._exit(1)", "utf-8")
    assert call("hint", "2.3", cwd=practice).out.startswith("Lab 02.3 · quoted queries\nHint 1 of 3\n")


@pytest.mark.parametrize(
    ("lab", "sentence"),
    [
        ("01.1", "Lab 01.1 is not in this practice: it is one of chapter 02."),
        ("02.9", "Chapter 02 has no lab 02.9."),
        ("ranking", "'ranking' is not a lab."),
        ("07.1", "This course has no chapter 07."),
    ],
)
def test_other_labs_are_refused(practice, call, lab, sentence):
    """What is no lab of this practice is wrong use, and nothing is remembered of it."""
    answer = call("hint", lab, cwd=practice)
    assert (answer.status, answer.told[0]) == (2, f"course: {sentence}")
    assert not (practice / ".course/hints.json").exists()


def test_outside_of_a_practice_is_refused(call, tiny_folder):
    """Hints belong to a practice."""
    answer = call("hint", "02.1", cwd=tiny_folder)
    assert answer.status == 2
    assert answer.told[0].endswith("is not inside a practice.")


def test_again_shows_those_before_and_no_new_one(practice, call):
    """--again reads what was shown, and counts nothing."""
    nothing = call("hint", "02.1", "--again", cwd=practice)
    assert (nothing.status, nothing.out.splitlines()[1][:40]) == (
        0,
        "No hint of it was shown yet; the first: ",
    )
    call("hint", "02.1", cwd=practice)
    call("hint", "02.1", cwd=practice)
    for _ in range(2):
        shown = call("hint", "02.1", "--again", cwd=practice).out
        assert [line for line in shown.splitlines() if line.startswith("Hint ")] == [
            "Hint 1 of 3",
            "Hint 2 of 3",
        ]


def test_labs_are_counted_apart(practice, call):
    """A hint of one lab doesn't use up another's."""
    for lab in ("02.1", "02.1", "02.2"):
        call("hint", lab, cwd=practice)
    noted = json.loads((practice / ".course/hints.json").read_text("utf-8"))
    assert noted == {"format": 1, "shown": {"02.1": 2, "02.2": 1}}


def test_json_holds_the_hint_and_the_counts(practice, call):
    """A program reads lab, title, hint and how far it is."""
    document = call("hint", "02.1", "--json", cwd=practice).document
    assert document == {
        "format": 1,
        "kind": "hint",
        "lab": "02.1",
        "title": "ranking",
        "hints": [{"number": 1, "text": GENERAL}],
        "shown": 1,
        "total": 3,
        "last": False,
    }


def test_language_is_chosen_by_option_and_variable(practice, course):
    """--lang wins over COURSE_LANG, which wins over the practice's own."""
    chinese = course("hint", "02.1", cwd=practice, env={"COURSE_LANG": "zh"})
    english = course("hint", "02.2", "--lang", "en", cwd=practice, env={"COURSE_LANG": "zh"})
    assert chinese.out.splitlines()[0] == "Lab 02.1 · 排序"
    assert english.out.splitlines()[0] == "Lab 02.2 · phrases"


def damage_by_tearing(note: Path) -> None:
    note.write_bytes(b'{"format": 1, "shown": {"02.1"')


def damage_by_bytes(note: Path) -> None:
    note.write_bytes(b"\xff\xfe\x00")


def damage_by_nesting(note: Path) -> None:
    note.write_text("[" * 200_000)


def damage_by_folder(note: Path) -> None:
    note.mkdir()
    (note / "inside").write_text("kept")


def damage_by_link(note: Path) -> None:
    note.symlink_to("nowhere")


def damage_by_later_format(note: Path) -> None:
    note.write_text('{"format": 2, "labs": []}')


@pytest.mark.parametrize(
    "damage",
    [
        damage_by_tearing,
        damage_by_bytes,
        damage_by_nesting,
        damage_by_folder,
        damage_by_link,
        damage_by_later_format,
    ],
)
def test_damaged_memory_begins_anew_and_is_kept_beside(practice, call, damage):
    """Whatever happened to hints.json, hints go on, and nothing of it is thrown away."""
    note = practice / ".course" / "hints.json"
    damage(note)
    for number in (1, 2):
        answer = call("hint", "02.1", cwd=practice)
        assert (answer.status, answer.out.splitlines()[1], answer.err) == (0, f"Hint {number} of 3", "")
    assert os.path.lexists(practice / ".course" / "hints.json.damaged-1")
    assert sorted(path.name for path in (practice / ".course").iterdir()) == [
        "hints.json",
        "hints.json.damaged-1",
        "practice.toml",
        "source.toml",
    ]


@pytest.mark.parametrize("shown", ['{"02.1": -4}', '{"02.1": "two"}', '{"02.1": true}', "[]", "null"])
def test_odd_counts_are_none(practice, call, shown):
    """A count that is none starts at the first hint."""
    (practice / ".course/hints.json").write_text(f'{{"format": 1, "shown": {shown}}}')
    assert call("hint", "02.1", cwd=practice).out.splitlines()[1] == "Hint 1 of 3"


def test_count_beyond_the_last_hint_shows_the_last(practice, call):
    """A course with fewer hints than before still answers."""
    (practice / ".course/hints.json").write_text('{"format": 1, "shown": {"02.1": 9}}')
    assert call("hint", "02.1", cwd=practice).out.splitlines()[1] == "Hint 3 of 3"


def test_lab_without_hints_is_the_courses_fault(tiny, call, tmp_path):
    """A course that has no hints for a lab is broken, and says which."""
    assert call("--course", tiny, "practice", "02", tmp_path / "w").status == 0
    (tiny / "labs/02/hints.toml").write_text('format = 1\n[hints]\n"02.2" = [{ en = "x", zh = "y" }]\n')
    answer = call("hint", "02.1", cwd=tmp_path / "w")
    assert (answer.status, answer.told[0]) == (3, "course: The course has no hints for Lab 02.1.")


def test_foreign_copy_of_the_package_is_broken(practice, call):
    """Where the current lab can't be judged, status 3 says why and names the doctor."""
    package = practice / "src/findex"
    package.rename(practice / "src/elsewhere")
    answer = call("hint", cwd=practice)
    assert answer.status == 3
    assert answer.told[1] == "Run `course doctor`."
