"""The engine knows nothing of its flagship: another course goes through every command, named or installed."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from course.cli import COMMANDS

ENGINE = Path(sys.modules["course.cli"].__file__ or "").parent
FLAGSHIP = re.compile(r"(?i)\bpi\b|pi_course|course_pi|\bagents?\b|\bLab 1[23]\b")
# The rule for coding assistants is about these, in whatever course; a file is named after it.
AGENTS_FILE = "AGENTS.md"
TRANSFER = """
from findex import index


def test_words_of_a_phrase_follow_one_another():
    made = index.Index()
    made.add("a", "old red fish")
    made.add("b", "red old fish")
    assert made.phrase("red fish") == ["a"]
    assert [name for name, _ in made.search('"red fish"')] == ["a"]
"""
Program = Callable[..., Any]


def test_nothing_of_the_flagship_is_named_in_the_engine() -> None:
    """No module, template or text of the engine names the flagship, its package or its subject."""
    found = []
    for path in sorted(ENGINE.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".jinja", ".yml", ".md", ".toml"):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if FLAGSHIP.search(line.replace(AGENTS_FILE, "")):
                    found.append(f"{path.relative_to(ENGINE)}:{number}: {line.strip()}")
    assert found == []


def test_foreign_course_goes_through_every_command(
    tiny: Path,
    call: Program,
    terminal: Callable[..., Any],
    ended: Callable[..., Any],
    done: Callable[[Path, str], None],
    tmp_path: Path,
) -> None:
    """Three chapters on text search, one file that grows: authors' commands first, then a learner's."""
    used = set()

    def run(*words: str | Path, status: int = 0, at: Path = tiny) -> str:
        used.add(str(words[0]))
        ran = call(*words, cwd=at)
        assert ran.status == status, f"{words}: {ran.out}{ran.err}"
        return str(ran.out)

    assert "Rebuild a text-search index" in run("list")
    assert "Pinned anew: 00, 01, 02." in run("pin")
    assert "Chapter 03, behind 02" in run("new", "--chapter", "03")
    assert "0 false, 0 broken" in run("verify", "03")
    assert "+learner01" in run("build", "--learner", "--out", tmp_path)
    assert "exported" in run("checkpoint", "01", "--export", tmp_path / "one")
    assert "caught    01.2-any-word (patch)" in run("drill", "01.2-any-word")
    assert "+    def phrase(" in run("diff", "02", "--yes")
    (tmp_path / "test_mine.py").write_text(TRANSFER, "utf-8")
    assert "2 of 2 mistakes caught" in run("transfer", "02", tmp_path / "test_mine.py")
    run("demo", "02")

    practice = tmp_path / "mywork"
    run("practice", "02", practice)
    assert "first red: Lab 02.1 ranking 尚未实现" in run("check", status=1, at=practice)
    assert "Hint 1 of" in run("hint", "02.1", at=practice)
    assert "Lab 02.1" in run("handout", at=practice)
    done(practice, "02.3")
    assert "Chapter 02 4/4" in run("check", at=practice)
    assert "what a run of your code shows" in run("quiz", "--answers", at=practice)
    assert "0 escaped, 0 broken" in run("drill", at=practice)
    assert "missing: fault injected" in run("record", status=1, at=practice)
    child = terminal("watch", cwd=practice)
    child.expect("Chapter 02 4/4")
    child.expect("h hint")
    assert ended(child, lambda: child.send("q")).status == 0
    used.add("watch")
    assert "Back to the starter: src/findex/index.py" in run("reset", "--yes", at=practice)
    assert "0 bad" in run("doctor", at=practice)
    assert used == COMMANDS.keys()


@pytest.fixture
def site(tiny: Path, call: Program, tmp_path: Path) -> Path:
    """An environment's packages: the engine, what it needs, and the tiny course from its wheel."""
    assert call("--course", tiny, "pin").status == 0
    assert call("--course", tiny, "build", "--instructor", "--out", tmp_path / "dist").status == 0
    folder = tmp_path / "site"
    folder.mkdir()
    for entry in Path(click.__file__).parent.parent.iterdir():
        # What the engine needs, but neither the checkout that is installed here nor what leads to it.
        if not entry.name.startswith(("course", "_editable", "__editable")) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    shutil.copytree(ENGINE, folder / "course", ignore=shutil.ignore_patterns("__pycache__"))
    (wheel,) = (tmp_path / "dist").iterdir()
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def add_course(site: Path, name: str, module: str) -> None:
    """Install what says that it brings a course."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[course.courses]\n{name} = {module}\n", "utf-8")


def test_installed_courses_are_found_and_chosen(site: Path, program: Program, tmp_path: Path) -> None:
    """One is found by itself; of several one is chosen by its name, or by the practice that was made of it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*words: str | Path, at: Path = elsewhere) -> Any:
        command = [sys.executable, "-S", "-m", "course", *words]
        return program(command, cwd=at, env={"PYTHONPATH": str(site)})

    made = run("practice", "01", "mywork")
    assert made.status == 0, made.err
    (elsewhere / "mywork" / ".course" / "source.toml").unlink()
    shutil.copytree(site / "course_tiny", site / "course_other")
    file = site / "course_other" / "checkpoints" / "course.toml"
    file.write_text(file.read_text("utf-8").replace('"tiny"', '"other"'), "utf-8")
    add_course(site, "other", "course_other")
    several = run("list")
    assert several.status == 2
    assert several.told == [
        "course: More than one course is installed: other, tiny.",
        "Choose one by its name, as `course --course other list`.",
    ]
    assert run("--course", "other", "list", "--json").document["course"] == "other"
    assert run("list", "--json", at=elsewhere / "mywork").document["course"] == "tiny"
    unknown = run("--course", "nothing", "list")
    assert unknown.status == 2
    assert unknown.told[1] == "Name a course's top folder, or an installed course; there is other, tiny."


BROKEN = {
    "no module": ("nowhere", "there is no module nowhere"),
    "fails when imported": ("fails.contents", "RuntimeError: it is not today's day"),
    "no course": ("email", "email holds no checkpoints/course.toml"),
    "no name of a module": (
        "..x",
        "ImportError: no package specified for '..x' (required for relative module names)",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_entry_point_is_one_sentence(
    case: str, call: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A course whose entry point leads nowhere is told with what to do, status 3; others go on working."""
    module, fault = BROKEN[case]
    (tmp_path / "fails").mkdir()
    (tmp_path / "fails" / "__init__.py").write_text(
        'raise RuntimeError("it is not\\n today\'s day")\n', "utf-8"
    )
    add_course(tmp_path, "bad", module)
    monkeypatch.syspath_prepend(tmp_path)
    ran = call("--course", "bad", "list", cwd=tmp_path)
    assert ran.status == 3
    assert ran.told == [
        f"course: The installed course bad can't be used: {fault}.",
        "Install its wheel again, or uninstall it.",
    ]
    assert call("list").status == 0
    assert "the installed course bad can't be used" in call("doctor", cwd=tmp_path).out
