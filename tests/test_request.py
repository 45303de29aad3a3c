"""Next commands: printed so that they run as they stand from where the user is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course.request import quoted

FIRST = "Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现"


def next_lines(out: str) -> list[str]:
    """The commands that an output prints under "Next:"."""
    lines = out.splitlines()
    after = lines[lines.index("Next:") + 1 :]
    return [line.strip() for line in after if line.startswith("  ")]


def shell(lines: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands one after the other, as a user pastes them."""
    return subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Where the user is: a directory with a space in its name."""
    folder = tmp_path / "my place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("on_path", [False, True])
def test_commands_of_a_new_practice_run(on_path, there, tiny_folder, tiny_history, course, monkeypatch):
    """What `course practice` prints leads to the first red, with and without the environment on PATH."""
    programs = str(Path(sys.executable).parent)
    paths = [path for path in os.environ["PATH"].split(":") if path != programs]
    monkeypatch.setenv("PATH", ":".join([programs, *paths] if on_path else paths))
    made = course("--course", tiny_folder, "practice", "02", "mywork", cwd=there)
    lines = next_lines(made.out)
    assert lines[0] == "cd mywork"
    assert lines[1] == ("pytest -m lab02_1" if on_path else f"{sys.executable} -m pytest -m lab02_1")
    ran = shell(lines, there)
    assert ran.returncode == 1
    assert ran.stdout.rstrip().endswith(FIRST)
    assert made.out.rstrip().endswith(f"shows {FIRST}")


def test_another_programs_of_the_same_name_are_not_trusted(there, tiny_folder, call, monkeypatch):
    """A `pytest` on PATH that is not this environment's own is not what is printed."""
    (there / "bin").mkdir()
    (there / "bin" / "pytest").write_text("#!/bin/sh\nexit 9\n", "utf-8")
    (there / "bin" / "pytest").chmod(0o755)
    monkeypatch.setenv("PATH", f"{there / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    made = call("--course", tiny_folder, "practice", "02", "w")
    assert next_lines(made.out)[1] == f"{sys.executable} -m pytest -m lab02_1"


def test_commands_of_list_and_checkpoint_run(there, tiny_folder, tiny_history, call):
    """What `list` and `checkpoint` print makes a practice of this course, in the language that was chosen."""
    listed = call("--course", tiny_folder, "list")
    ran = shell(next_lines(listed.out), there)
    assert ran.returncode == 0, ran.stderr
    assert "Words and documents" in (there / "mywork" / "README.md").read_text("utf-8")
    shutil.rmtree(there / "mywork")
    told = call("--course", tiny_folder, "--lang", "zh", "checkpoint", "02")
    ran = shell(next_lines(told.out), there)
    assert ran.returncode == 0, ran.stderr
    assert "排序与短语" in (there / "mywork" / "README.md").read_text("utf-8")


def test_commands_after_a_change_of_directory_run(there, tiny_folder, tiny_history, call):
    """With -C the printed commands hold from where the user really is."""
    (there / "sub").mkdir()
    made = call("-C", "sub", "--course", tiny_folder, "practice", "02", "w")
    assert next_lines(made.out)[0] == "cd sub/w"
    told = call("-C", tiny_folder / "labs", "list", "--json")
    assert told.status == 0
    listed = call("-C", there / "sub", "--course", tiny_folder, "list")
    assert shell(next_lines(listed.out), there).returncode == 0
    assert (there / "sub" / "mywork" / ".git").is_dir()


def test_commands_of_an_export_run(there, tiny_folder, tiny_history, call):
    """What `checkpoint --export` prints runs the target's tests green; a foundation chapter leads to its export."""
    told = call("--course", tiny_folder, "checkpoint", "0")
    exporting = next_lines(told.out)
    assert exporting[0].endswith(" checkpoint 00 --export ./chapter-00")
    exported = shell(exporting, there)
    assert exported.returncode == 0, exported.stderr
    tested = shell(next_lines(exported.stdout), there)
    assert tested.returncode == 0, tested.stdout
    assert " passed" in tested.stdout


@pytest.mark.parametrize(
    "name",
    ["a b", "it's", "two\nlines", "$x `y` \\", "练习", "\x1b[0m\t", os.fsdecode(b"\xff\xfe"), "-x", "'\n'"],
)
def test_quoted_path_is_the_path_to_a_shell(name):
    """Any path is quoted in one printable line, and a shell reads the very same bytes."""
    line = quoted(name)
    assert line.isprintable()
    ran = subprocess.run(
        ["bash", "-c", f"printf %s {line}" if name != "-x" else f"printf -- {line}"],
        capture_output=True,
        check=True,
    )
    assert ran.stdout == os.fsencode(name)
