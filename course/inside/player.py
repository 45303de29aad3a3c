"""Plays a chapter's demo in a process of its own: from the tree's sources only, with a report where it fails.

It is run by its path. COURSE_DEMO holds the settings as JSON: tree, package, demo, report. Decision: sources
are compiled anew, because a learner's file may change within the second that bytecode is stamped with.
"""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from course.inside.fresh import load_fresh_under

SETTINGS = "COURSE_DEMO"
FAILED = 70


def lead_to(source: str) -> None:
    """Make `source` the first place that modules come from."""
    load_fresh_under(source)
    sys.path.insert(0, source)


def play(settings: dict[str, str], arguments: list[str]) -> int:
    """Run the demo as a program and give its status; what ends it otherwise goes into the report."""
    source = Path(settings["tree"]) / "src"
    lead_to(str(source))
    spec = importlib.util.find_spec(settings["package"])
    origin = spec.origin if spec is not None else None
    if origin is None or not Path(origin).resolve().is_relative_to(source.resolve()):
        _report(settings, {"foreign": origin or "nowhere"})
        return FAILED
    sys.argv = [settings["demo"], *arguments]
    try:
        runpy.run_path(settings["demo"], run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        sys.stderr.write(f"{stop.code}\n")
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever ends the demo is told in one sentence
        _report(settings, _failure(error, settings))
        return FAILED
    return 0


def _failure(error: BaseException, settings: dict[str, str]) -> dict[str, Any]:
    """The exception, its lines in tree and demo (`where`, outermost first), the traceback from there on."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [(name, frame.lineno) for frame in frames if (name := _own_name(frame.filename, settings))]
    if isinstance(error, SyntaxError) and error.filename and (name := _own_name(error.filename, settings)):
        where.append((name, error.lineno))
    while error.__traceback__ is not None:
        if _own_name(error.__traceback__.tb_frame.f_code.co_filename, settings):
            break
        error.__traceback__ = error.__traceback__.tb_next
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a learner's exception may fail to say itself
        text = ""
    trace = "".join(traceback.format_exception(error))
    return {"type": type(error).__name__, "text": text, "where": where, "traceback": trace}


def _own_name(file: str, settings: dict[str, str]) -> str | None:
    """How a file of the tree, or the demo, is named to people; None for any other."""
    if not Path(file).is_absolute():
        return None
    path = Path(file).resolve()
    tree, demo = Path(settings["tree"]).resolve(), Path(settings["demo"]).resolve()
    if path == demo:
        return Path(*demo.parts[-3:]).as_posix()
    return path.relative_to(tree).as_posix() if path.is_relative_to(tree) else None


def _report(settings: dict[str, str], data: dict[str, Any]) -> None:
    Path(settings["report"]).write_text(json.dumps(data), "ascii")


if __name__ == "__main__":
    os.dup2(1, 2)
    status = play(json.loads(os.environ.pop(SETTINGS)), sys.argv[1:])
    sys.exit(status)
