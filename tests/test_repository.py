"""The repository itself: its lab runs, its two commands, and what its files may not say."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
Program = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "status", "closing"),
    [
        (["-m", "lab12_1"], 0, ["Lab 12.1 2/2"]),
        (
            ["-m", "lab12_1", "--tree", "starter"],
            1,
            ["Lab 12.1 0/2 · first red: Lab 12.1 resource catalog 尚未实现"],
        ),
        (
            ["-m", "lab12_2 or lab12_3", "--tree", "12.2"],
            1,
            ["Lab 12.2 3/3", "Lab 12.3 0/2 · first red: Lab 12.3 template and resource context 尚未实现"],
        ),
        (["-m", "lab13", "--tree", "13.4"], 0, ["Chapter 13 10/10"]),
    ],
)
def test_labs_run_here_against_any_tree(
    tests_in: Program, arguments: list[str], status: int, closing: list[str]
) -> None:
    """The markers of a practice run the same tests here: on the reference, on a starter, on a state between."""
    ran = tests_in(ROOT, "-q", "-p", "no:cacheprovider", *arguments)
    assert ran.status == status, ran.out + ran.err
    assert ran.out.splitlines()[-len(closing) :] == closing


def test_names_of_lab_tests_are_the_same_in_every_process(tests_in: Program) -> None:
    """No parameter's name holds an address: workers, and reruns by name, have to mean the same test."""
    ran = tests_in(ROOT, "-q", "--collect-only", "-p", "no:cacheprovider", "labs")
    assert ran.status == 0, ran.out + ran.err
    assert re.findall(r".* at 0x[0-9a-f]+.*", ran.out) == []


def test_tree_without_a_chapter_is_wrong_use(tests_in: Program) -> None:
    """A starter belongs to one chapter: which one has to be said."""
    ran = tests_in(ROOT, "-q", "--tree", "starter", "labs")
    assert ran.status == 4
    assert "name it by -m" in ran.err


def test_ci_runs_the_readmes_second_command() -> None:
    """What CI does is what the README tells people to do, word for word."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    line = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    assert line == blocks[1].strip()
    assert "course practice 12 ./mywork" in blocks[0]


def test_files_have_lf_line_ends_and_name_no_place_of_one_machine() -> None:
    """Every tracked text file ends its lines with LF, and none leads to a path of its author's machine."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    if listed.returncode != 0 or not names:
        pytest.skip("not a git checkout")
    author = re.compile(r"/(?:work|root|home/[a-z]+|Users/[a-z]+)/(?:main|\.pyenv|\.cache)\b")
    for name in names:
        file = ROOT / name
        if file.is_file():
            data = file.read_bytes()
            assert b"\r\n" not in data, name
            assert not author.search(data.decode("utf-8", "replace")), name


def test_only_one_place_builds_syntax_trees() -> None:
    """CPython 3.11 fails now and then where two threads build one at once, so all go through one door."""
    door = ROOT / "course" / "syntax.py"
    others = [file for file in (ROOT / "course").rglob("*.py") if file != door]
    assert [file.name for file in others if "ast.parse(" in file.read_text("utf-8")] == []


def test_git_is_started_wherever_the_process_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a current directory that vanishes nor a PATH swapped by another thread keeps git from a folder."""
    from git import Git as Command

    from course.git import Git

    execute = Command.execute

    def disturbed(self: Command, command: list[str], **options: Any) -> Any:
        assert self.working_dir == os.sep
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(tmp_path / "nowhere"))
            return execute(self, command, **options)

    monkeypatch.setattr(Command, "execute", disturbed)
    assert Git(tmp_path).run("init", "--quiet", ".") == ""
    assert (tmp_path / ".git").is_dir()
