"""Runs measured inside an environment: `watch TREE` gives seconds from save to verdict, `drill TREE` ratios.

Printed as JSON for tools/bench.py.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import mutation

from course.catalog import find_course
from course.drill.faults import chapter_faults
from course.inside.pytestrun import SETTINGS
from course.judge import TestRun
from course.labs import lab_run, run_tests
from course.process import Finished, run_process
from course.runner import PLUGINS, Call, ColdRunner, Runner, WarmRunner

TIMES = 9


class FreshPytest(ColdRunner):
    """A fresh pytest process with the same named plugins, as a person would start it."""

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder in the system's place for temporary files."""
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    def run(self, call: Call) -> Finished:
        """Run pytest to its end or its deadline."""
        named = [part for plugin in PLUGINS for part in ("-p", plugin)]
        kept = {key: value for key, value in call.env.items() if key != "PYTHONDONTWRITEBYTECODE"}
        command = [sys.executable, "-P", "-m", "pytest", *named, *call.arguments]
        return run_process(
            command, cwd=call.cwd, env={**kept, SETTINGS: call.witness}, deadline=call.deadline
        )


def watch(tree: Path) -> list[float]:
    """Seconds of a warm run of Lab 12.2 after its teaching file was written anew."""
    course = find_course(tree)
    chapter = course.chapter("12")
    run = lab_run(course, chapter, tree, [chapter.lab("12.2")])
    file = tree / chapter.manifest.teaching_files[0]
    found = []
    with WarmRunner() as runner:
        run_tests(run, runner)
        run_tests(run, runner)
        for _ in range(TIMES):
            file.write_bytes(file.read_bytes())
            begun = time.perf_counter()
            run_tests(run, runner)
            found.append(time.perf_counter() - begun)
    return found


def drill(tree: Path) -> list[float]:
    """Warm by fresh for a portable fault of each lab, the tests' own call time taken off both."""
    course = find_course(tree)
    chapter = course.chapter("12")
    faults = {f.entry.lab: f for f in chapter_faults(chapter) if f.portable is not None and not f.entry.waits}
    found = []
    with WarmRunner() as warm:
        for fault in [None, *faults.values()]:
            labs = chapter.manifest.lab
            run = lab_run(course, chapter, tree, labs, fault=fault.portable if fault is not None else None)
            for _ in range(3):
                _warm(run, warm)
            _fresh(run)
            found += [_warm(run, warm) / _fresh(run) for _ in range(3)]
    return found


def mutmut(folder: Path) -> tuple[float, int]:
    """The seconds of a whole mutmut run with chapter 12's counted tests, and how many mutants it killed."""
    tree = mutation.prepare("12", folder, counted=True)
    begun = time.perf_counter()
    mutation.run(tree)
    took = time.perf_counter() - begun
    return took, sum(code in mutation.KILLED for code in mutation.exit_codes(tree).values())


def _warm(run: TestRun, runner: Runner) -> float:
    """The seconds of a run and its judgement without its tests' own call time."""
    begun = time.perf_counter()
    outcome = run_tests(run, runner)
    return time.perf_counter() - begun - sum(test.seconds for test in outcome.tests)


def _fresh(run: TestRun) -> float:
    """The seconds of a fresh pytest process without its tests' own call time."""
    outcome = run_tests(run, FreshPytest())
    return outcome.seconds - sum(test.seconds for test in outcome.tests)


if __name__ == "__main__":
    print(
        json.dumps(
            {"watch": watch, "drill": drill, "mutmut": mutmut}[sys.argv[1]](Path(sys.argv[2]).resolve())
        )
    )
