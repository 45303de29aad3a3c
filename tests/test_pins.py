"""Pins: the commit ids that bind an installed course, and only that."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import click
import pytest

from course.catalog import load_course
from course.pins import read_pins

PINS = Path("checkpoints", "history.toml")


def install(course: Path, site: Path) -> Path:
    """Lay a course out in `site` as its wheel would; give its folder."""
    folder = site / "course_tiny"
    shutil.copytree(course, folder)
    info = site / "tiny_course-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-course\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[course.courses]\ntiny = course_tiny\n", "utf-8")
    return folder


def test_pin_writes_the_ids_and_then_nothing(tiny, tiny_history, call):
    """`course pin` pins every checkpoint's computed id; run again it finds nothing to write."""
    first = call("--course", tiny, "pin")
    assert (first.status, first.out) == (0, "Pinned anew: 00, 01, 02.\n")
    written = tomllib.loads((tiny / PINS).read_text("utf-8"))
    assert written == {"format": 1, "checkpoints": tiny_history.checkpoints}
    before = (tiny / PINS).stat()
    again = call("--course", tiny, "pin")
    assert (again.status, again.out) == (0, "Every pin holds; nothing was written.\n")
    assert ((tiny / PINS).stat().st_mtime_ns, (tiny / PINS).stat().st_ino) == (
        before.st_mtime_ns,
        before.st_ino,
    )
    assert sorted(path.name for path in (tiny / "checkpoints").iterdir()) == [
        "00",
        "course.toml",
        "history.toml",
    ]


def test_pins_of_other_ids_are_renewed(tiny, tiny_history, call):
    """Only what differs is told; a chapter that is pinned but gone is told too, and leaves the file."""
    ids = {**tiny_history.checkpoints, "01": "0" * 40, "07": "1" * 40}
    lines = "".join(f'{key} = "{commit}"\n' for key, commit in ids.items())
    (tiny / PINS).write_text(f"format = 1\n\n[checkpoints]\n{lines}", "utf-8")
    ran = call("--course", tiny, "pin", "--json")
    assert ran.status == 0
    assert ran.document["changed"] == ["01", "07"]
    assert read_pins(load_course(tiny)) == tiny_history.checkpoints


@pytest.mark.parametrize(
    "text", ["format = 1\n[checkpoints\n", "format = 2\n", "\ufefformat = 1\r\n", "checkpoints = 1\n"]
)
def test_broken_pins_are_renewed(text, tiny, tiny_history, call):
    """A history.toml that can't be read is no dead end: `pin` writes it anew."""
    (tiny / PINS).write_text(text, "utf-8")
    assert call("--course", tiny, "pin").status == 0
    assert read_pins(load_course(tiny)) == tiny_history.checkpoints


def test_pins_saved_by_another_editor_are_read(tiny, tiny_history, call):
    """A byte order mark and CRLF line ends in history.toml change nothing."""
    assert call("--course", tiny, "pin").status == 0
    data = (tiny / PINS).read_bytes()
    (tiny / PINS).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert read_pins(load_course(tiny)) == tiny_history.checkpoints


def test_mismatch_blocks_nobody_in_a_checkout(tiny, tiny_history, call, tmp_path):
    """In a source checkout the ids in force are the computed ones, whatever is pinned."""
    (tiny / PINS).write_text('format = 1\n\n[checkpoints]\n00 = "0000"\n', "utf-8")
    ran = call("--course", tiny, "checkpoint", "02", "--json")
    assert (ran.status, ran.document["target"]) == (0, tiny_history.checkpoints["02"])
    assert call("--course", tiny, "practice", "02", tmp_path / "w").status == 0


def test_mismatch_is_an_error_of_an_installed_course(tiny, call, course, tmp_path):
    """An installed course whose contents are not what was pinned is refused: status 3, nothing made."""
    assert call("--course", tiny, "pin").status == 0
    folder = install(tiny, tmp_path / "site")
    env = {"PYTHONPATH": str(tmp_path / "site")}
    good = course("--course", folder, "practice", "02", tmp_path / "good", env=env)
    assert good.status == 0, good.err
    solution = folder / "solutions" / "01" / "src" / "findex" / "index.py"
    solution.write_text(solution.read_text("utf-8") + "\n# tampered with\n", "utf-8")
    bad = course("--course", folder, "practice", "02", tmp_path / "bad", env=env)
    assert bad.status == 3
    assert (
        bad.told[0] == "course: The installed course tiny is not what was pinned: checkpoints 01, 02 differ."
    )
    assert "install it again" in bad.told[1]
    assert not (tmp_path / "bad").exists()
    listed = course("--course", folder, "list", env=env)
    assert listed.status == 0


def test_installed_course_is_not_pinned_anew(tiny, course, tmp_path):
    """`pin` is for a course's checkout: on an installed course it is wrong use."""
    folder = install(tiny, tmp_path / "site")
    ran = course("--course", folder, "pin", env={"PYTHONPATH": str(tmp_path / "site")})
    assert ran.status == 2
    assert ran.told == [
        "course: An installed course's pins can't be renewed.",
        "Run it in the course's checkout.",
    ]
    assert not (folder / PINS).exists()


def test_installed_course_is_found_by_itself(tiny, call, program, tmp_path):
    """With nothing but an engine and one course installed, the course is found from anywhere."""
    assert call("--course", tiny, "pin").status == 0
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    install(tiny, site)
    engine = Path(sys.modules["course.catalog"].__file__).parent
    shutil.copytree(engine, site / "course", ignore=shutil.ignore_patterns("__pycache__"))
    for entry in Path(click.__file__).parent.parent.iterdir():
        # What the engine needs, but neither the developer's own course nor the checkout that is installed.
        if not entry.name.startswith(("course", "_editable", "__editable")) and not entry.name.endswith(
            ".pth"
        ):
            (site / entry.name).symlink_to(entry)
    listing = [sys.executable, "-S", "-m", "course", "list", "--json"]
    ran = program(listing, cwd=elsewhere, env={"PYTHONPATH": str(site)})
    assert (ran.status, ran.document["course"]) == (0, "tiny"), ran.err
    shutil.rmtree(site / "course_tiny")
    gone = program(listing, cwd=elsewhere, env={"PYTHONPATH": str(site)})
    assert gone.status == 3
    assert gone.told == [
        "course: The installed course tiny can't be used: there is no module course_tiny.",
        "Install its wheel again, or uninstall it.",
    ]
