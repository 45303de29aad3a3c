"""The claims about faults: killed as declared, on the reference and on every other known implementation."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course.catalog import Chapter
from course.drill.drill import DrillResult, Verdict
from course.drill.faults import Form, chapter_faults
from course.drill.series import REFERENCE, Series, Subject, default_workers
from course.judge import TestRun
from course.labs import count_lab, run_tests, teaching_modules
from course.outcome import Status
from course.trees import lab_tests, read_tree, write_tree
from course.verify.bench import Workbench
from course.verify.claim import Claim, ClaimBroken, ClaimFalse


def fault_claims(bench: Workbench, chapter: Chapter) -> Iterator[Claim]:
    """The claims about a chapter's faults; its drills are run once, for all of them."""
    drills = _Drills(bench, chapter)
    for lab in chapter.manifest.lab:
        yield _claim(
            chapter,
            f"the faults of Lab {lab.id} are killed by exactly the tests they name",
            drills.exact,
            lab.id,
        )
    yield _claim(chapter, "every counted test kills a fault that no other of its lab kills", drills.all_earn)
    for folder in other_implementations(bench, chapter):
        name = folder.name
        yield _claim(
            chapter,
            f"the implementation {name} is green, extra tests included",
            _is_green,
            bench,
            chapter,
            folder,
        )
        yield _claim(chapter, f"portable faults have the same verdict on {name}", drills.same_on, folder)


def _claim(chapter: Chapter, sentence: str, prove: object, *arguments: object) -> Claim:
    assert callable(prove)
    return Claim(chapter=chapter.id, sentence=sentence, prove=lambda: prove(*arguments))


def other_implementations(bench: Workbench, chapter: Chapter) -> list[Path]:
    """Folders of teaching files written by others: tests/second/NN/<name>/src/…, in the course's checkout."""
    folder = bench.course.root / "tests" / "second" / chapter.id
    return sorted(path for path in folder.iterdir() if (path / "src").is_dir()) if folder.is_dir() else []


def _other_tree(bench: Workbench, chapter: Chapter, folder: Path) -> Path:
    def make(path: Path) -> None:
        shutil.copytree(bench.target(chapter), path)
        write_tree({f"src/{name}": data for name, data in read_tree(folder / "src").items()}, path)

    return bench.once(f"other-{chapter.id}-{folder.name}", make)


def _is_green(bench: Workbench, chapter: Chapter, folder: Path) -> str:
    run = run_tests(
        TestRun(
            tree=_other_tree(bench, chapter, folder),
            package=bench.course.manifest.package,
            modules=teaching_modules(chapter),
            files=list(lab_tests(chapter)),
            deadline=300,
        )
    )
    if run.status is Status.BROKEN:
        raise ClaimBroken(run.cause)
    for test in run.tests:
        if test.status is not Status.PASSED:
            raise ClaimFalse(f"{test.name}: {test.failure.headline if test.failure else test.status.value}")
    for lab in chapter.manifest.lab:
        outcome = count_lab(lab, run)
        if outcome.status is not Status.PASSED:
            raise ClaimFalse(outcome.line)
    return f"{chapter.test_count}/{chapter.test_count} and {len(run.tests) - chapter.test_count} extra"


class _Drills:
    """A chapter's drills for the gate, run when the first claim asks for them."""

    def __init__(self, bench: Workbench, chapter: Chapter) -> None:
        self._bench = bench
        self._chapter = chapter
        self._lock = threading.Lock()
        self._results: list[DrillResult] | None = None

    def results(self) -> list[DrillResult]:
        with self._lock:
            if self._results is None:
                subject = Subject(name=REFERENCE, tree=self._bench.target(self._chapter))
                self._results = self._run(subject)
            return self._results

    def _run(self, subject: Subject) -> list[DrillResult]:
        workers = default_workers()
        faults = [
            (f, form) for f in chapter_faults(self._chapter) for form in f.forms if form in subject.forms
        ]
        with (
            Series(self._bench.course, self._chapter, subject, workers) as series,
            ThreadPoolExecutor(workers) as pool,
        ):
            return list(series.run(faults, series.baseline(), pool))

    def exact(self, lab_id: str) -> str:
        """Each fault of the lab in each form, by the named tests and by no other of the lab."""
        results = [result for result in self.results() if result.fault.entry.lab == lab_id]
        if not results:
            raise ClaimFalse("the lab has no fault")
        for result in results:
            _demand_exact(result)
        portable = sum(result.form is Form.PORTABLE for result in results)
        faults = len(results) - portable
        if not portable:
            raise ClaimFalse("none of the lab's faults has a portable form")
        return f"{faults} faults, {portable} portable too"

    def all_earn(self) -> str:
        """Each counted test kills a fault alone in its lab, or `overlaps` in lab.toml says why not."""
        alone: set[str] = set()
        tests: dict[str, set[str]] = {}
        for result in self.results():
            tests.setdefault(result.fault.entry.lab, set()).update(result.lab_tests)
            killers = [name for name in result.killers if name in result.lab_tests]
            alone |= set(killers) if len(killers) == 1 else set()
        excused = {name for lab in self._chapter.manifest.lab for name in lab.overlaps}
        idle = sorted(name for names in tests.values() for name in names - alone - excused)
        if idle:
            more = f", nor do {len(idle) - 1} more" if idle[1:] else ""
            raise ClaimFalse(f"{idle[0]} kills no fault alone{more}")
        return f"{sum(len(names) for names in tests.values())} tests"

    def same_on(self, folder: Path) -> str:
        """The portable faults on another implementation, against the verdicts on the reference."""
        there = {
            (r.fault.name, tuple(sorted(_lab_killers(r)))) for r in self.results() if r.form is Form.PORTABLE
        }
        subject = Subject(
            name=f"the implementation {folder.name}", tree=_other_tree(self._bench, self._chapter, folder)
        )
        results = self._run(subject)
        for result in results:
            key = (result.fault.name, tuple(sorted(_lab_killers(result))))
            if result.verdict is not Verdict.CAUGHT or key not in there:
                killers = ", ".join(key[1]) or "none"
                raise ClaimFalse(f"{key[0]}: {result.verdict.value} by {killers} {result.remark}")
        return f"{len(results)} faults"


def _lab_killers(result: DrillResult) -> list[str]:
    return [name for name in result.killers if name in result.lab_tests]


def _demand_exact(result: DrillResult) -> None:
    what = f"{result.fault.name} ({result.form.value})"
    if result.verdict is not Verdict.CAUGHT:
        raise ClaimFalse(f"{what} {result.verdict.value}: {result.remark}")
    others = set(_lab_killers(result)) - set(result.fault.entry.tests)
    if others:
        raise ClaimFalse(f"{what} is killed by {min(others)} too, which lab.toml does not name")
    red = [n for n in result.lab_tests if result.cells.get(n) not in ("green", "killed")]
    if red:
        raise ClaimFalse(f"{what} makes {red[0]} red without a kill: {result.cells.get(red[0])}")
