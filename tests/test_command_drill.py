"""`course drill`: kills counted strictly, nothing written into the tree that is judged."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]
Done = Callable[[Path, str], None]
INDEX = Path("src", "findex", "index.py")


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file outside of .git and .course, by its bytes."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not {".git", ".course"} & set(path.relative_to(folder).parts)
    }


def test_reference_catches_every_fault_in_every_form(call: Program, tiny_folder: Path) -> None:
    """Outside of a practice patches and portable forms are planted in the reference, and it is said so."""
    ran = call("--course", tiny_folder, "drill", "02", cwd=tiny_folder)
    assert ran.status == 0, ran.out + ran.err
    assert "breaking the reference" in ran.out
    assert "02.1-words-once (patch)" in ran.out
    assert "02.1-words-once (portable)" in ran.out
    assert ran.out.splitlines()[-1] == "8 caught, 0 escaped, 0 broken"


def test_practice_drills_the_learners_own_code(call: Program, practice: Path, done: Done) -> None:
    """In a practice portable faults are planted in the learner's code, and it is said so."""
    done(practice, "02.3")
    ran = call("drill", cwd=practice)
    assert ran.status == 0, ran.out + ran.err
    assert "breaking your code" in ran.out
    assert "(patch)" not in ran.out


def test_unsolved_lab_is_said_to_be_unsolved(call: Program, practice: Path, done: Done) -> None:
    """Faults of a lab that is not green are not planted; where none is left, that is an error."""
    done(practice, "02.2")
    ran = call("drill", cwd=practice)
    assert "unsolved  Lab 02.3 is not solved: " in ran.out
    assert ran.status == 0
    done(practice, "02.1")
    none = call("drill", "02.2-anywhere", cwd=practice)
    assert none.status == 2
    assert "No fault was planted" in none.err


def test_zero_faults_is_an_error(call: Program, tiny: Path) -> None:
    """A chapter without faults gives no all-clear."""
    manifest = tiny / "labs" / "01" / "lab.toml"
    text = manifest.read_text("utf-8")
    kept = text[: text.index("fault = [")] if "fault = [" in text else text
    rest = text[text.index("acceptance") :] if "fault = [" in text else ""
    lines = [line for line in (kept + rest).splitlines() if "fault" not in line]
    manifest.write_text("\n".join(lines) + "\n", "utf-8")
    ran = call("--course", tiny, "drill", "01", cwd=tiny)
    assert ran.status in (2, 3), ran.out
    assert "caught" not in ran.out


def test_unknown_fault_names_those_of_its_lab(call: Program, tiny_folder: Path) -> None:
    """A fault that is not there is wrong use."""
    ran = call("--course", tiny_folder, "drill", "02.1-nothing", cwd=tiny_folder)
    assert ran.status == 2
    assert "02.1-words-once" in ran.err


def test_fault_that_no_test_sees_has_escaped(call: Program, tiny: Path) -> None:
    """A fault that changes nothing is reported as escaped, with status 1."""
    fault = tiny / "labs" / "02" / "faults" / "02.2-anywhere.py"
    fault.write_text('"""Does nothing."""\n\n\ndef inject(module):\n    return None\n', "utf-8")
    ran = call("--course", tiny, "drill", "02.2-anywhere", cwd=tiny)
    assert ran.status == 1
    assert "escaped   02.2-anywhere (portable) · stayed green: test_phrase_words_follow" in ran.out


@pytest.mark.parametrize(
    ("inject", "told"),
    [
        ("import os; os._exit(3)", "could not be planted"),
        ("raise RuntimeError('no')", "could not be planted"),
        ("module.Index.phrase = lambda self, text: 1 / 0", "red, but not by an assertion"),
        ("del module.Index", ""),
    ],
)
def test_crash_is_no_kill(call: Program, tiny: Path, inject: str, told: str) -> None:
    """A crash, a collection error or another exception is reported as what it is, with status 3."""
    fault = tiny / "labs" / "02" / "faults" / "02.2-anywhere.py"
    fault.write_text(f'"""Breaks otherwise."""\n\n\ndef inject(module):\n    {inject}\n', "utf-8")
    ran = call("--course", tiny, "drill", "02.2-anywhere", cwd=tiny)
    assert ran.status == 3, ran.out + ran.err
    assert "broken    02.2-anywhere (portable)" in ran.out
    assert told in ran.out
    assert ran.out.splitlines()[-1] == "1 caught, 0 escaped, 1 broken"


def test_declared_exception_is_a_kill(call: Program, tiny_folder: Path) -> None:
    """An exception that the fault declares counts like an assertion."""
    ran = call("--course", tiny_folder, "drill", "01.2-unknown-word", cwd=tiny_folder)
    assert ran.status == 0, ran.out


def test_endless_loop_is_killed_with_a_verdict_of_its_own(call: Program, tiny: Path) -> None:
    """A fault that never ends is timed out, neither caught nor escaped, soon after its deadline."""
    fault = tiny / "labs" / "02" / "faults" / "02.2-anywhere.py"
    loop = "module.Index.phrase = lambda self, text: [0 for _ in iter(int, 1)]"
    fault.write_text(f'"""Never ends."""\n\n\ndef inject(module):\n    {loop}\n', "utf-8")
    document = call("--course", tiny, "drill", "02.2-anywhere", "--json", cwd=tiny).document
    portable = next(result for result in document["results"] if result["form"] == "portable")
    assert portable["verdict"] == "timed out"
    deadline = float(portable["remark"].split("within ")[1].split(" s")[0])
    assert portable["seconds"] <= 1.2 * deadline + 2


def test_patch_that_does_not_apply_is_broken(call: Program, tiny: Path) -> None:
    """A patch that fits no more is reported, not passed over."""
    patch = tiny / "labs" / "02" / "faults" / "02.1-limit-first.patch"
    lines = patch.read_text("utf-8").splitlines(keepends=True)
    patch.write_text(
        "".join(line[:1] + "other " + line[1:] if line[:1] in " -" else line for line in lines), "utf-8"
    )
    ran = call("--course", tiny, "drill", "02.1-limit-first", cwd=tiny)
    assert ran.status == 3
    assert "does not apply" in ran.out


def test_table_is_the_kill_matrix(call: Program, tiny_folder: Path) -> None:
    """--table has a row a fault and a column a test, x where it kills."""
    ran = call("--course", tiny_folder, "drill", "02", "--table", cwd=tiny_folder)
    assert "  1  test_search_scores" in ran.out
    row = next(line for line in ran.out.splitlines() if line.startswith("02.3-quotes-dropped (patch)"))
    assert row.split()[2:] == [".", ".", ".", "x"] or "x" in row.split()[-1]


def test_csv_and_json_are_for_programs(call: Program, tiny_folder: Path) -> None:
    """--csv has one row a drill; --json one document with the same verdicts."""
    text = call("--course", tiny_folder, "drill", "01", "--csv", cwd=tiny_folder).out
    rows = list(csv.DictReader(io.StringIO(text)))
    document = call("--course", tiny_folder, "drill", "01", "--json", cwd=tiny_folder).document
    assert [row["verdict"] for row in rows] == [result["verdict"] for result in document["results"]]
    assert {row["subject"] for row in rows} == {"the reference"}


def test_show_explains_and_shows_the_edit_outside_of_a_practice_only(
    call: Program, tiny_folder: Path, practice: Path
) -> None:
    """--show tells what and why; the edit of the reference's lines is no business of an unsolved practice."""
    outside = call("--course", tiny_folder, "drill", "--show", "02.1-limit-first", cwd=tiny_folder)
    inside = call("drill", "--show", "02.1-limit-first", cwd=practice)
    assert "+++ " in outside.out
    assert "+++ " not in inside.out
    assert "what " in inside.out


def test_faults_of_equal_length_planted_in_one_second_are_told_apart(
    call: Program, practice: Path, done: Done, tiny: Path
) -> None:
    """Verdicts follow the code that was planted, whatever its size and time stamp."""
    folder = tiny / "labs" / "02" / "faults"
    patch = (folder / "02.1-limit-first.patch").read_text("utf-8")
    verdicts = []
    for _ in range(2):
        ran = call("--course", tiny, "drill", "02.1-limit-first", "02.1-ties-backwards", "--json", cwd=tiny)
        verdicts.append([result["verdict"] for result in ran.document["results"]])
    assert patch
    assert verdicts == [["caught", "caught"], ["caught", "caught"]]


@pytest.mark.parametrize(
    "use",
    [
        "def call(text, cut=tokenize):\n    return cut(text)\n",
        "TABLE = {'cut': tokenize}\ndef call(text):\n    return TABLE['cut'](text)\n",
        "from functools import partial\ncall = partial(tokenize)\n",
        "class Wider(Index):\n    pass\ndef call(text):\n    i = Wider(); i.add('a', text); return tokenize(text)\n",
    ],
)
def test_fault_in_a_name_captured_at_import_is_planted(tmp_path: Path, tiny_history: Any, use: str) -> None:
    """A dependent module that captures a name at import sees the fault: it is planted before."""
    from course.history import export_commit
    from course.judge import TestRun
    from course.labs import run_tests

    tree = tmp_path / "tree"
    export_commit(tiny_history, tiny_history.checkpoints["02"], tree)
    source = tree / "src" / "findex"
    (source / "later.py").write_text(f"from findex.index import Index, tokenize\n{use}", "utf-8")
    (tree / "tests" / "test_later.py").write_text(
        "from findex import later\ndef test_it():\n    assert later.call('a b') == ['a', 'b']\n", "utf-8"
    )
    fault = tmp_path / "fault.py"
    fault.write_text("def inject(module):\n    module.tokenize = lambda text: ['wrong']\n", "utf-8")
    run = TestRun(
        tree=tree, package="findex", modules=["findex.index", "findex.later"], files=["tests/test_later.py"]
    )
    assert run_tests(run).status.value == "passed"
    planted = TestRun(
        tree=tree,
        package="findex",
        modules=["findex.index", "findex.later"],
        files=["tests/test_later.py"],
        fault=fault,
    )
    outcome = run_tests(planted)
    assert outcome.tests[0].failure is not None
    assert outcome.tests[0].failure.assertion_only


def test_drill_leaves_the_practice_byte_for_byte(call: Program, practice: Path, done: Done) -> None:
    """A drill writes evidence and nothing else: no bytecode, no caches."""
    done(practice, "02.3")
    before = fingerprint(practice)
    assert call("drill", cwd=practice).status == 0
    assert fingerprint(practice) == before
    assert [path.name for path in (practice / ".course").iterdir() if path.suffix == ".jsonl"] == [
        "evidence.jsonl"
    ]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_killed_drill_leaves_the_practice_byte_for_byte(practice: Path, done: Done, name: str) -> None:
    """Whatever ends a drill, at any moment: the tree that is judged is as it was, and no child goes on."""
    done(practice, "02.3")
    before = fingerprint(practice)
    chance = random.Random(name)
    for _ in range(7):
        drill = subprocess.Popen(
            [sys.executable, "-m", "course", "drill", "-j", "2"],
            cwd=practice,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(0.1, 2.5))
        drill.send_signal(getattr(signal, name))
        status = drill.wait(timeout=60)
        assert status in (0, 130, 143, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)
        assert fingerprint(practice) == before
    wait_for_no_child(practice)


def wait_for_no_child(practice: Path) -> None:
    """Processes that a killed drill had started end by themselves."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not _running_in(practice):
            return
        time.sleep(0.1)
    raise AssertionError(f"still running: {_running_in(practice)}")


def _running_in(practice: Path) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cwd").readlink() == practice and int(folder.name) != os.getpid():
                found.append((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return found


def test_fault_by_hand_is_led_through_and_kept(
    terminal: Callable[..., Any], ended: Callable[[Any], Any], practice: Path, done: Done
) -> None:
    """--try shows the edit, waits for the red, waits for the undoing, and keeps both as evidence."""
    done(practice, "02.3")
    file = practice / INDEX
    text = file.read_text("utf-8")
    child = terminal("drill", "--try", "02.2-anywhere", cwd=practice)
    child.expect("Make the mistake and save")
    file.write_text(text + "\n# nothing wrong yet\n", "utf-8")
    child.expect("Still green")
    file.write_text(text.replace("if self._follow(name, words)]", "]"), "utf-8")
    child.expect("Caught")
    file.write_text(text, "utf-8")
    child.expect("Restored")
    assert ended(child).status == 0
    kinds = [
        line
        for line in (practice / ".course" / "evidence.jsonl").read_text("utf-8").splitlines()
        if "fault_" in line
    ]
    assert len(kinds) == 2
    assert '"kind": "fault_injected"' in kinds[0]
    assert '"kind": "fault_restored"' in kinds[1]
    assert file.read_text("utf-8") == text


def test_fault_by_hand_needs_a_solved_lab(call: Program, practice: Path) -> None:
    """In code that is red there is nothing to break."""
    ran = call("drill", "--try", "02.2-anywhere", cwd=practice)
    assert ran.status == 2
    assert "Solve Lab 02.2 first" in ran.err


def test_mistyped_fault_is_guessed(call: Program, tiny_folder: Path) -> None:
    """The nearest name comes first, and few others."""
    ran = call("--course", tiny_folder, "drill", "01.2-anywhere", cwd=tiny_folder)
    assert ran.status == 2
    assert "Perhaps: 02.2-anywhere" in ran.err
    assert ran.err.count(",") <= 2
