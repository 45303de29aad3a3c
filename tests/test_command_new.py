"""`course new`: a course and a chapter that are proven as they come, whole or not there at all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from course.catalog import load_course
from course.cli import run as run_command
from course.leftovers import partial_name

Program = Callable[..., Any]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A course as `course new` leaves it."""
    folder = tmp_path_factory.mktemp("new") / "Text tools"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_CACHE_DIR", str(shared_cache))
        assert run_command(["new", str(folder)]) == 0
    return folder


@pytest.fixture
def own(begun: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return shutil.copytree(begun, tmp_path / "own")


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_new_course_is_proven_at_once(begun: Path, call: Program) -> None:
    """The pins hold and chapter 00 is true; that chapter 01 is too, the ten minutes of the README show."""
    course = load_course(begun)
    assert (course.manifest.id, course.manifest.package) == ("text-tools", "text_tools")
    assert {"README.md", "CONTRIBUTING.md", "pyproject.toml", ".gitignore"} <= files(begun).keys()
    assert call("pin", cwd=begun).out == "Every pin holds; nothing was written.\n"
    ran = call("verify", "00", "--json", cwd=begun)
    assert ran.status == 0, ran.out
    assert {claim["status"] for claim in ran.document["claims"]} == {"true"}


def test_new_course_goes_to_a_class(begun: Path, call: Program, tmp_path: Path) -> None:
    """Its pyproject makes a wheel as it stands, the learner's edition too."""
    assert call("build", "--learner", "--out", tmp_path, cwd=begun).status == 0
    assert [path.name for path in tmp_path.iterdir()] == [
        "text_tools_course-0.1.0+learner01-py3-none-any.whl"
    ]


def test_new_chapter_between_two_moves_the_later_one(own: Path, call: Program) -> None:
    """Chapter 05, then 03 before it: each parent is the chapter before, every other line stays, pins hold."""
    file = own / "checkpoints" / "course.toml"
    file.write_text(
        "# mine\n" + file.read_text("utf-8").replace('["00", "01"]', '[\n    "00",\n    "01",\n]')
    )
    assert call("new", "--chapter", "5", cwd=own).status == 0
    before = files(own)
    assert call("new", "--chapter", "03", "--parent", "1", cwd=own).status == 0
    after = files(own)
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed == {"checkpoints/course.toml", "checkpoints/history.toml", "labs/05/lab.toml"}
    assert all(name.split("/")[1] == "03" for name in after.keys() - before.keys())
    course = load_course(own)
    assert course.manifest.chapters == ["00", "01", "03", "05"]
    assert [chapter.manifest.parent for chapter in course.chapters] == [None, "00", "01", "03"]
    assert file.read_text("utf-8").startswith("# mine\n")
    assert call("pin", cwd=own).out == "Every pin holds; nothing was written.\n"


def test_other_languages_get_a_text_each(own: Path, call: Program) -> None:
    """A course in other languages than the template's gets the English texts for each of them."""
    for file in [*own.glob("labs/*/*.toml"), own / "checkpoints" / "course.toml"]:
        file.write_text(file.read_text("utf-8").replace("zh = ", "de = ").replace('"zh"', '"de"'), "utf-8")
    for file in own.glob("labs/*/handout.zh.md"):
        file.rename(file.with_name("handout.de.md"))
    ran = call("new", "--chapter", "02", cwd=own)
    assert ran.status == 0, ran.err
    assert sorted(path.name for path in (own / "labs" / "02").glob("handout.*")) == [
        "handout.de.md",
        "handout.en.md",
    ]
    assert load_course(own).chapter("02").manifest.title == {"en": "Long words", "de": "Long words"}


BAD_CHAPTERS = {
    "there already": (["--chapter", "1"], "This course has a chapter 01 already.", "The next is 02."),
    "no number": (["--chapter", "two"], "'two' is not a chapter number.", "Chapters so far: 00, 01."),
    "unknown parent": (
        ["--chapter", "02", "--parent", "07"],
        "This course has no chapter 07.",
        "Its chapters",
    ),
    "not the parent": (
        ["--chapter", "02", "--parent", "00"],
        "Chapter 02 would follow 01, not 00.",
        "The parent",
    ),
    "neither": ([], "A new course or a new chapter?", "`course new ./my-course`"),
    "both": (["x", "--chapter", "02"], "A new course or a new chapter?", "`course new ./my-course`"),
    "id of a chapter": (["--chapter", "02", "--id", "x"], "--id names a new course.", "Leave it out"),
    "parent of a course": (["x", "--parent", "01"], "--parent belongs to --chapter.", "Leave it out"),
    "not empty": (["."], ". is not empty; nothing in it was touched.", "Name a new directory."),
    "the course's own": (["labs/02"], "labs/02 lies inside the course's own folder", "Choose a place"),
    "Python's name": (["../json"], "Learners can't write a package json", "Choose another id"),
    "no letters": (["../课程"], "课程 holds no letter", "Add --id my-course."),
    "odd id": (["../x", "--id", "My Course"], "'My Course' can't be a course's id", "Choose one"),
}


@pytest.mark.parametrize("case", BAD_CHAPTERS)
def test_bad_input_is_one_sentence_and_changes_nothing(case: str, own: Path, call: Program) -> None:
    """Status 2, what is wrong, what to do next, and every file as it was."""
    words, told, hint = BAD_CHAPTERS[case]
    before = files(own.parent)
    ran = call("new", *words, cwd=own)
    assert ran.status == 2, ran.err
    assert ran.told[0].startswith(f"course: {told}")
    assert ran.told[1].startswith(hint)
    assert files(own.parent) == before


def test_folder_that_nobody_lists_is_not_overwritten(own: Path, call: Program) -> None:
    """Files of a chapter that course.toml does not list are somebody's work."""
    (own / "solutions" / "02").mkdir()
    (own / "solutions" / "02" / "mine.py").write_text("x = 1\n", "utf-8")
    before = files(own)
    ran = call("new", "--chapter", "02", cwd=own)
    assert ran.status == 2
    assert "solutions/02/mine.py is there, without a chapter 02 in course.toml" in ran.told[0]
    assert files(own) == before


def test_course_laid_out_otherwise_is_told(own: Path, call: Program) -> None:
    """A chapter list that can't be edited line by line is left to the author; nothing is half done."""
    file = own / "checkpoints" / "course.toml"
    file.write_text(file.read_text("utf-8").replace('["00", "01"]', '["00", # ]\n"01"]'), "utf-8")
    before = files(own)
    ran = call("new", "--chapter", "02", cwd=own)
    assert ran.status == 3
    assert files(own) == before


def test_failure_while_it_is_put_in_takes_all_back(
    own: Path, call: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends the last step, the course is what it was, byte for byte."""
    before = files(own)
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if Path(target) == own / "checkpoints" / "course.toml":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    ran = call("new", "--chapter", "02", cwd=own)
    assert (ran.status, ran.told[0]) == (3, "course: The disk is full.")
    assert files(own) == before


def test_what_a_kill_left_is_taken_over(own: Path, call: Program) -> None:
    """Folders of the chapter without its line in course.toml, and the copy aside, are in nobody's way."""
    assert call("new", "--chapter", "02", cwd=own).status == 0
    whole = files(own)
    for name in ("checkpoints/course.toml", "checkpoints/history.toml"):
        text = (own / name).read_text("utf-8").replace(', "02"', "")
        (own / name).write_text(
            "".join(line for line in text.splitlines(True) if not line.startswith("02 ="))
        )
    shutil.rmtree(own / "labs" / "02")
    left = partial_name("chapter").replace(f"-{os.getpid()}-", "-999999999-") + "1"
    (own / left).mkdir()
    assert load_course(own).manifest.chapters == ["00", "01"]
    assert call("new", "--chapter", "02", cwd=own).status == 0
    assert files(own) == whole
    assert not (own / left).exists()


@pytest.mark.parametrize("moment", [0.3, 0.7, 1.2])
def test_killed_run_leaves_no_course(moment: float, tmp_path: Path) -> None:
    """A kill at any moment leaves nothing under the course's name, or the whole course."""
    folder = tmp_path / "my-course"
    child = subprocess.Popen(
        [sys.executable, "-m", "course", "new", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    time.sleep(moment)
    child.send_signal(signal.SIGKILL)
    child.wait()
    if folder.exists():
        assert load_course(folder).manifest.chapters == ["00", "01"]
