"""The README's "Write a lab in ten minutes", done literally: each command run, each file written as it says."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HEADING = "## Write a lab in ten minutes"
BLOCK = re.compile(r"(?ms)^(?P<said>(?:(?!^ *```).)*?)^ *```(?P<kind>\w+)\n(?P<body>.*?)^ *```$")
NAMED = re.compile(r"`([\w./-]+\.\w+)`")


def steps() -> Iterator[tuple[str, str, str]]:
    """Kind, named file and text of each block of the section, in order."""
    section = (ROOT / "README.md").read_text("utf-8").partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    for block in BLOCK.finditer(section):
        named = NAMED.findall(block["said"])
        yield block["kind"], named[-1] if named else "", textwrap.dedent(block["body"])


def change(file: Path, diff: str) -> None:
    """Let each run of lines with a minus, which has to be there once, make way for the run with a plus after it."""
    text = file.read_text("utf-8")
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE):
        before, after = (re.sub(r"(?m)^[-+]", "", lines) for lines in (old, new))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file.write_text(text, "utf-8")


def test_the_section_makes_a_lab_that_is_proven(program: Callable[..., Any], tmp_path: Path) -> None:
    """Somebody who types what stands there has a course whose every claim is true, and a practice at its first red."""
    here, said = tmp_path, ""
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for kind, name, body in steps():
        if kind == "bash":
            ran = program(["bash", "-e", "-c", f"{body}\npwd > {tmp_path}/here"], cwd=here, env=env)
            assert ran.status == 0, ran.out + ran.err
            here, said = Path((tmp_path / "here").read_text("utf-8").strip()), ran.out
        elif kind == "diff":
            change(here / name, body)
        else:
            assert (here / name).is_file(), name
            (here / name).write_text(body, "utf-8")
    assert here == tmp_path / "my-course"
    assert re.search(r"(?m)^(\d+) claims: \1 true, 0 false, 0 broken$", said), said
    assert "chapter 01: the starter holds no answer" in said  # as `course new` left it
    assert "chapter 02: the faults of Lab 02.1 are killed by exactly the tests they name" in said
    assert "shows Lab 02.1 0/1 · first red: Lab 02.1 shorten is not written yet" in said
