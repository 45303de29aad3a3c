"""A learner's own transfer test, judged: green on what is right, red on each thing that is wrong.

Decision: it runs beside the reference's bytecode only, and nothing that it prints is shown, because a test
could else read the reference's text.
"""

from __future__ import annotations

import enum
import py_compile
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course.catalog import Chapter, Course, pick
from course.drill.faults import Fault, apply_patch, find_fault
from course.errors import InputError
from course.judge import TestRun
from course.labs import run_tests, teaching_modules
from course.leftovers import temporary_folder
from course.manifest import TransferEntry
from course.outcome import RunOutcome, Status
from course.runner import Runner
from course.syntax import parse


class Against(enum.Enum):
    """What a transfer test was run against."""

    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class TransferRow:
    """One run: `passed` is whether the test did what it has to do there."""

    name: str
    against: Against
    description: str
    passed: bool
    remark: str
    broken: bool = False


class Transfer:
    """The judgement of one test file; `target` is the reference's tree, which is copied, never shown."""

    def __init__(self, course: Course, chapter: Chapter, target: Path, file: Path, runner: Runner) -> None:
        self._course = course
        self._chapter = chapter
        self._target = target
        self._file = file
        self._runner = runner

    def rows(self, language: str) -> Iterator[TransferRow]:
        """Judge against the right ones first, then each wrong one. Raises InputError where none is."""
        entry = self._chapter.manifest.transfer
        if entry is None or not (entry.faults or entry.module):
            raise InputError(f"Chapter {self._chapter.id} has no transfer exercise that can be judged.")
        right = list(self._right_rows(entry.module))
        yield from right
        if not all(row.passed for row in right):
            return
        yield from self._wrong_rows(entry, language)
        # Once more: a test that leaves something behind would be red against anything by now.
        yield from (row for row in self._right_rows(entry.module) if not row.passed)

    def _right_rows(self, module: str | None) -> Iterator[TransferRow]:
        """Against the reference, or the correct adapters shipped with the chapter: transfer/correct_*.py."""
        if module is None:
            yield self._right("the reference", None, None)
            return
        for adapter in sorted((self._chapter.labs_dir / "transfer").glob("correct_*.py")):
            yield self._right(adapter.stem, adapter, module)

    def _wrong_rows(self, entry: TransferEntry, language: str) -> Iterator[TransferRow]:
        """Against each fault that lab.toml lists, or the broken adapters: transfer/broken_*.py."""
        if entry.module is None:
            for name in entry.faults:
                fault = find_fault(self._course, name)
                yield self._wrong(name, pick(fault.entry.summary, language), self._run(fault=fault))
            return
        for adapter in sorted((self._chapter.labs_dir / "transfer").glob("broken_*.py")):
            run = self._run(adapter=adapter, module=entry.module)
            yield self._wrong(adapter.stem, _first_line(adapter), run)

    def _right(self, name: str, adapter: Path | None, module: str | None) -> TransferRow:
        run = self._run(adapter=adapter, module=module)
        passed = run.status is Status.PASSED
        remark = f"{len(run.tests)} tests green" if passed else _why(run)
        return TransferRow(
            name=name,
            against=Against.RIGHT,
            description="has to pass",
            passed=passed,
            remark=remark,
            broken=run.status is Status.BROKEN,
        )

    def _wrong(self, name: str, description: str, run: RunOutcome) -> TransferRow:
        killers = [
            test.name
            for test in run.tests
            if test.failure is not None and test.failure.phase == "call" and test.failure.assertion_only
        ]
        broken = run.status is Status.BROKEN or (not killers and run.status is not Status.PASSED)
        remark = f"caught by {', '.join(killers)}" if killers else _why(run) if broken else "escaped"
        return TransferRow(
            name=name,
            against=Against.WRONG,
            description=description,
            passed=bool(killers) and not broken,
            remark=remark,
            broken=broken,
        )

    def _run(
        self, *, fault: Fault | None = None, adapter: Path | None = None, module: str | None = None
    ) -> RunOutcome:
        with temporary_folder("transfer") as folder:
            tree = folder / "tree"
            shutil.copytree(self._target, tree)
            if fault is not None and fault.patch is not None:
                apply_patch(fault, tree)
            for file in self._chapter.manifest.teaching_files:
                _seal(tree / file)
            for test in (tree / "tests").glob("test_*.py"):
                test.unlink()
            test = tree / "tests" / self._file.name
            shutil.copyfile(self._file, test)
            if adapter is not None and module is not None:
                shutil.copyfile(adapter, tree / "src" / f"{module}.py")
            return run_tests(
                TestRun(
                    tree=tree,
                    package=self._course.manifest.package,
                    modules=teaching_modules(self._chapter),
                    files=[f"tests/{test.name}"],
                    fault=fault.portable if fault is not None and fault.patch is None else None,
                ),
                self._runner,
            )


def _seal(file: Path) -> None:
    """Leave a module's bytecode and take its text away."""
    py_compile.compile(str(file), cfile=str(file.with_suffix(".pyc")), dfile=file.name, doraise=True)
    file.unlink()


def _first_line(adapter: Path) -> str:
    """What an adapter does wrong, by the first line of its docstring."""
    import ast

    text = ast.get_docstring(parse(adapter.read_text("utf-8"))) or adapter.stem
    return text.splitlines()[0]


def _why(run: RunOutcome) -> str:
    """Why a run is red, without a word that came from the reference or the test."""
    if run.cause:
        return run.cause
    red = [test.name for test in run.tests if test.status is not Status.PASSED]
    kinds = {test.failure.types[0] for test in run.tests if test.failure is not None and test.failure.types}
    return f"red: {', '.join(red)} ({', '.join(sorted(kinds))})" if red else "no test was found"
