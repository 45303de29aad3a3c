"""The shipped course's learner edition, installed for real: nothing in the environment holds an answer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from course.catalog import load_course
from course.cli import run as run_command
from course.verify.search import Search

ROOT = Path(__file__).resolve().parent.parent
FIRST = "12"
Program = Callable[..., Any]


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, shared_cache: Path, install: Callable[[Path, Path], None]
) -> Path:
    """A fresh environment with the learner's wheel, the engine's own needs borrowed; its top folder."""
    folder = tmp_path_factory.mktemp("learner")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_CACHE_DIR", str(shared_cache))
        out = str(folder / "dist")
        assert run_command(["--course", str(ROOT), "build", "--learner", "--out", out]) == 0
    (wheel,) = (folder / "dist").iterdir()
    install(wheel, folder / "env")
    return folder / "env"


@pytest.fixture(scope="module")
def install() -> Callable[[Path, Path], None]:
    """Install one wheel into a new environment that finds this one's packages behind its own."""
    import subprocess
    import venv

    def run(wheel: Path, folder: Path) -> None:
        venv.create(folder)
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "-q"]
        options = ["--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
        subprocess.run([*pip, *options], check=True, capture_output=True, timeout=300)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "borrowed.pth").write_text(f"{Path(click.__file__).parent.parent}\n", "utf-8")

    return run


@pytest.fixture(scope="module")
def search() -> Search:
    """The search for the answers of every chapter that is practised."""
    course = load_course(ROOT)
    return Search(course, course.practice_chapters)


def test_learners_environment_holds_no_answer(
    environment: Path, program: Program, tmp_path: Path, search: Search
) -> None:
    """Environment, cache and practice are searched, bytecode and git objects too, after a first practice."""
    env = {"COURSE_CACHE_DIR": str(tmp_path / "cache")}
    command = environment / "bin" / "course"
    made = program([command, "practice", FIRST, "mywork", "--json"], cwd=tmp_path, env=env)
    assert made.status == 0, made.err
    assert list((environment / "lib").rglob("course_pi/starters/**/*.pyc"))
    assert list(search.in_folder(environment)) == []
    assert list(search.in_folder(tmp_path)) == []
    planted = tmp_path / "cache" / "planted.py"
    shutil.copyfile(ROOT / "solutions" / FIRST / "src" / "pi_course" / "resources.py", planted)
    assert len(list(search.in_folder(tmp_path / "cache"))) == 1
    chosen = program([command, "doctor"], cwd=tmp_path, env=env)
    assert f"pi, installed, a learner's edition without answers from chapter {FIRST} on" in chosen.out


def test_what_the_edition_cannot_do_is_one_sentence(
    environment: Path, program: Program, tmp_path: Path
) -> None:
    """A later chapter names --from, a drill of the reference where it can be had: status 2, no traceback."""
    env = {"COURSE_CACHE_DIR": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    command = environment / "bin" / "course"
    later = program([command, "practice", "13", "mywork"], cwd=tmp_path, env=env)
    assert (later.status, (tmp_path / "mywork").exists()) == (2, False)
    assert later.told == [
        "course: This is a learner's edition without the reference that chapter 13 starts from.",
        "Carry your own code on: `course practice 13 DIR --from PRACTICE`, your practice of the chapter before.",
    ]
    drill = program([command, "drill", FIRST], cwd=tmp_path, env=env)
    assert (drill.status, len(drill.told)) == (2, 2)


def test_every_chapter_that_is_practised_has_an_edition(call: Program, tmp_path: Path) -> None:
    """A class may start at any of them: the edition holds no answer from there on, and the chapter can be begun."""
    for chapter in load_course(ROOT).practice_chapters[1:]:
        out = tmp_path / chapter.id
        ran = call("--course", ROOT, "build", "--learner", "--chapter", chapter.id, "--out", out)
        assert ran.status == 0, ran.err
        assert [path.name.partition("-py3")[0] for path in out.iterdir()] == [
            f"course_lab_kit-0.1.0+learner{chapter.id}"
        ]


def test_installed_engine_begins_a_course(environment: Path, program: Program, tmp_path: Path) -> None:
    """The wheel brings the templates, that of the project files too: `course new` needs no checkout."""
    env = {"COURSE_CACHE_DIR": str(tmp_path / "cache")}
    ran = program([environment / "bin" / "course", "new", "my-course"], cwd=tmp_path, env=env)
    assert ran.status == 0, ran.err
    assert (tmp_path / "my-course" / "starters" / "_project" / "copier.yml").is_file()
