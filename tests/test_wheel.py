"""The built wheel alone, installed in an empty environment elsewhere, is enough for a learner."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
Program = Callable[..., Any]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with nothing but the wheel and what it asks for; its bin directory."""
    import subprocess

    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(
        ".git", ".venv*", "__pycache__", ".*_cache", "mywork", ".hypothesis", "mutants"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder / "dist"),
        str(source),
    ]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    shutil.rmtree(source)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True, timeout=300)
    (wheel,) = (folder / "dist").glob("*.whl")
    pip = [str(folder / "env" / "bin" / "python"), "-m", "pip", "install", "-q", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=600)
    return folder / "env" / "bin"


def test_wheel_alone_makes_a_practice_that_goes_from_red_to_green(
    environment: Path, program: Program, tmp_path: Path
) -> None:
    """`course practice 12 ./mywork`, the exact first red, and with the reference's labs 2/2 and 3/3."""
    env = {
        "COURSE_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": f"{environment}{os.pathsep}{os.environ['PATH']}",
    }
    made = program([environment / "course", "practice", "12", "./mywork"], cwd=tmp_path, env=env)
    assert made.status == 0, made.err
    assert "  pytest -m lab12_1" in made.out.splitlines()
    practice = tmp_path / "mywork"
    red = program(["pytest", "-m", "lab12_1"], cwd=practice, env=env)
    assert "Lab 12.1 0/2 · first red: Lab 12.1 resource catalog 尚未实现" in red.out.splitlines()
    assert "2 failed" in red.out
    name = "src/pi_course/resources.py"
    shutil.copyfile(ROOT / "solutions" / "12" / name, practice / name)
    green = program(["pytest", "-m", "lab12_1 or lab12_2"], cwd=practice, env=env)
    assert green.out.splitlines()[-2:] == ["Lab 12.1 2/2", "Lab 12.2 3/3"]


def test_wheel_holds_no_second_implementation_and_no_leftovers(environment: Path) -> None:
    """What travels is the course; other people's solutions, bytecode of ours and editor files stay at home."""
    packages = next(environment.parent.glob("lib/python*/site-packages"))
    content = packages / "course_pi"
    assert (content / "checkpoints" / "history.toml").is_file()
    assert not list(content.rglob("second"))
    assert not [path for path in content.rglob("*") if path.name.endswith("~") or path.name.startswith(".#")]


def test_installed_course_that_was_changed_is_refused(
    environment: Path, program: Program, tmp_path: Path
) -> None:
    """An installed course is bound by its pins: a changed file is told, not passed on to learners."""
    packages = next(environment.parent.glob("lib/python*/site-packages"))
    file = packages / "course_pi" / "solutions" / "01" / "src" / "pi_course" / "values.py"
    text = file.read_bytes()
    env = {"COURSE_CACHE_DIR": str(tmp_path / "cache")}
    try:
        file.write_bytes(text + b"\n# changed\n")
        ran = program([environment / "course", "practice", "12", "./mywork"], cwd=tmp_path, env=env)
    finally:
        file.write_bytes(text)
    assert ran.status == 3
    assert "is not what was pinned" in ran.err
    assert not (tmp_path / "mywork").exists()
