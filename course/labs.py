"""Running a tree's tests in a child process, and counting labs against the manifest.

Decision: plugins are named instead of auto-loaded and only the asked files are given, because that is what
makes a check quicker than plain pytest, and foreign plugins can't change a verdict.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course
from course.judge import TestRun, judge
from course.manifest import LabEntry
from course.outcome import LabOutcome, RunOutcome, Status
from course.process import child_environment, for_child
from course.runner import CODE, Call, ColdRunner, Runner

_MODULE = re.compile(r"""^MODULE\b[^=\n]*=\s*["']([\w.]+)["'].*$""", re.MULTILINE)
_UNUSED = [
    part for name in ("pastebin", "stepwise", "setuponly", "setupplan")
    for part in ("-p", f"no:{name}")
]  # fmt: skip
"""Plugins of pytest's own that no run of ours has a use for: each takes its time to set up."""


def teaching_modules(chapter: Chapter) -> list[str]:
    """The import names of a chapter's teaching files: `src/pkg/a.py` is `pkg.a`."""
    names = [file.removeprefix("src/").removesuffix(".py") for file in chapter.manifest.teaching_files]
    return [name.removesuffix("/__init__").replace("/", ".") for name in names]


def lab_run(
    course: Course, chapter: Chapter, tree: Path, labs: Iterable[LabEntry], **changes: Any
) -> TestRun:
    """The run of some labs' counted tests in a tree."""
    expression = " or ".join(lab.marker for lab in labs)
    settings: dict[str, Any] = {
        "tree": tree,
        "package": course.manifest.package,
        "modules": teaching_modules(chapter),
        "files": [chapter.manifest.focus_test],
        "expression": expression,
    }
    return TestRun(**{**settings, **changes})


def run_tests(run: TestRun, runner: Runner | None = None) -> RunOutcome:
    """Run the tests in a child process, by default a fresh one, and say what came of it."""
    runner = runner or ColdRunner()
    with runner.folder() as folder:
        # A name of its own: what an earlier run left running may still write to that one's.
        report = folder / f"report-{secrets.token_hex(4)}.jsonl"
        finished = runner.run(_call(run, runner.bytecode(_test_files(run)), folder, report))
        events = _read_events(report)
        for event in events:
            if event["event"] == "end":
                runner.learn(event["libraries"], event["earlier"])
        stack = report.with_suffix(".stack")
        stack_text = stack.read_text("utf-8", "replace") if stack.is_file() else ""
    return judge(run, finished, events, stack_text)


def _call(run: TestRun, bytecode: Path | None, folder: Path, report: Path) -> Call:
    """How pytest is called for a run that writes into a folder and testifies in a report."""
    target, alone = _target(run)
    witness = {
        "report": for_child(report),
        "tree": for_child(run.tree.resolve()),
        "package": run.package,
        "modules": list(run.modules),
        "fault": for_child(run.fault) if run.fault is not None else None,
        "target": target,
        "until": time.time() + run.deadline,
        "shuffle": run.shuffle,
        "kept": for_child(bytecode / CODE) if bytecode is not None else None,
    }
    own = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    return Call(
        arguments=[*_arguments(run), f"--basetemp={folder / 'tmp'}"],
        cwd=folder if run.elsewhere else run.tree,
        env=child_environment(own),
        witness=json.dumps(witness),
        deadline=run.deadline,
        cache=bytecode,
        target=target,
        alone=alone,
        settled=_settled_files(run),
    )


def _test_files(run: TestRun) -> list[Path]:
    """What of the tests the run may import: its files, and every Python file beside them."""
    files = [run.tree / file for file in run.files]
    beside = {other for file in files for other in file.parent.glob("*.py") if other.is_file()}
    return [*files, *sorted(beside)]


def _target(run: TestRun) -> tuple[str, bool]:
    """The module that the fault is planted in, and whether the fault may reach others of the package.

    It is the one that the fault names as MODULE, else the first that is taught; empty without a fault.
    """
    if run.fault is None:
        return "", False
    text = run.fault.read_text("utf-8", "replace") if run.fault.is_file() else ""
    named = _MODULE.search(text)
    return (named[1] if named is not None else run.modules[0]), run.package in _MODULE.sub("", text)


def _settled_files(run: TestRun) -> list[Path]:
    """What stands before a run: configuration, conftest.py, source; what is taught only with a fault."""
    top = run.tree / "src"
    taught = {top / name.replace(".", "/") for name in run.modules if run.fault is None}
    folders = {run.tree / folder for file in run.files for folder in Path(file).parents}
    found = [run.tree / "pyproject.toml", *(folder / "conftest.py" for folder in folders)]
    found += [
        path
        for path in _files_below(top)
        if path.with_suffix("") not in taught and not (path.stem == "__init__" and path.parent in taught)
    ]
    return sorted(found)


def _files_below(top: Path) -> Iterator[Path]:
    """Every file below a folder but bytecode, through links to folders too, each folder once."""
    seen: set[str] = set()
    for parent, below, files in os.walk(top, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:
            below.clear()
            continue
        seen.add(real)
        below[:] = [name for name in below if name != "__pycache__"]
        yield from (Path(parent, name) for name in files)


def _arguments(run: TestRun) -> list[str]:
    marks = ["-m", run.expression] if run.expression else []
    return [
        "-p", "no:cacheprovider", *_UNUSED, "-q", "--no-header",
        "--tb=no", "-c", str(run.tree / "pyproject.toml"), *marks,
        *(str(run.tree / file) for file in run.files),
    ]  # fmt: skip


def _read_events(report: Path) -> list[dict[str, Any]]:
    events = []
    try:
        lines = report.read_text("ascii").splitlines()
    except (OSError, ValueError):
        return []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def count_lab(lab: LabEntry, run: RunOutcome) -> LabOutcome:
    """A lab's count in a run, against its manifest."""
    tests = run.of_marker(lab.marker)
    passed = sum(test.status is Status.PASSED for test in tests)
    first_red = next((test for test in tests if test.status is not Status.PASSED), None)
    cause = run.cause
    if not cause and first_red is None and passed != lab.tests:
        cause = f"{len(tests)} tests carry {lab.marker}, the manifest has {lab.tests}"
    if run.status is Status.BROKEN:
        status = Status.BROKEN
    elif passed == len(tests) == lab.tests and not run.cause:
        status = Status.PASSED
    else:
        status = Status.FAILED
    return LabOutcome(
        lab=lab.id,
        passed=passed,
        expected=lab.tests,
        status=status,
        first_red=first_red,
        cause=cause,
        run=run,
    )
