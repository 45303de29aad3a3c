"""A chapter's demo, played on a tree in a child process."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course
from course.errors import EnvironmentFault, InputError
from course.leftovers import temporary_folder
from course.process import child_environment, for_child, kill_group, start_process

_PLAYER = Path(__file__).parent / "inside" / "player.py"
_CHUNK = 65536


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What to play: the demo's file, on a tree with its package; relative paths are seen from `cwd`."""

    file: Path
    tree: Path
    package: str
    arguments: Sequence[str]
    cwd: Path


@dataclass(frozen=True, kw_only=True)
class DemoFailure:
    """Why a demo failed: one clause with file and line, and the traceback where there is one."""

    reason: str
    traceback: str = ""


def demo_file(chapter: Chapter) -> Path:
    """Where a chapter's demo lies, if it has one."""
    return chapter.labs_dir / "demo.py"


def require_demo(course: Course, chapter: Chapter) -> Path:
    """The chapter's demo. Raises InputError naming the chapters that have one."""
    file = demo_file(chapter)
    if not file.is_file():
        known = ", ".join(one.id for one in course.chapters if demo_file(one).is_file())
        raise InputError(f"Chapter {chapter.id} has no demo.", f"Those that have one: {known or 'none'}.")
    return file


def play_demo(demo: Demo, show: Callable[[str], None]) -> DemoFailure | None:
    """Play a demo, handing its output to `show` as it comes. Raises EnvironmentFault."""
    with temporary_folder("demo") as folder:
        report = folder / "report.json"
        settings = {
            "tree": for_child(demo.tree.resolve()),
            "package": demo.package,
            "demo": for_child(demo.file.resolve()),
            "report": for_child(report),
        }
        status = _play(demo, child_environment({"COURSE_DEMO": json.dumps(settings)}), show)
        found = _read(report)
    if "foreign" in found:
        raise EnvironmentFault(
            f"The {demo.package} that was imported is not this tree's own: {found['foreign']}.",
            "Run `course doctor`.",
        )
    if "type" in found:
        return DemoFailure(reason=_reason(found), traceback=found["traceback"])
    if status < 0:
        return DemoFailure(reason=f"signal {-status} ended it")
    return DemoFailure(reason=f"it ended with status {status}") if status else None


def _play(demo: Demo, env: dict[str, str], show: Callable[[str], None]) -> int:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    process = start_process([sys.executable, "-P", _PLAYER, *demo.arguments], cwd=demo.cwd, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.close()
        while chunk := os.read(process.stdout.fileno(), _CHUNK):
            show(decoder.decode(chunk))
        show(decoder.decode(b"", final=True))
        return process.wait()
    finally:
        kill_group(process)


def _read(report: Path) -> dict[str, Any]:
    try:
        data = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _reason(found: dict[str, Any]) -> str:
    """The exception in one line, and the innermost line of the tree, else of the demo."""
    first = next(iter(found["text"].strip().splitlines()), "")
    sentence = f"{found['type']}: {first}" if first else found["type"]
    own = [place for place in found["where"] if place[0].startswith("src/")] or found["where"]
    return f"{sentence}, at {own[-1][0]}:{own[-1][1]}" if own else sentence
