"""The claims about faults: killed as declared, on the reference and on every other known implementation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course.catalog import Chapter
from course.drill.drill import REFERENCE, DrillResult, Subject, Verdict
from course.drill.faults import Form, chapter_faults
from course.drill.series import Series, workers_for
from course.trees import lab_tests, read_tree, write_tree
from course.verify.bench import Workbench
from course.verify.claim import Claim, ClaimFalse, claim_about, counted
from course.verify.runs import what_is_red


def fault_claims(bench: Workbench, chapter: Chapter) -> Iterator[Claim]:
    """The claims about a chapter's faults; its drills are run once, for all of them."""
    number, about = chapter.id, (bench, chapter)
    for lab in chapter.manifest.lab:
        exact = f"the faults of Lab {lab.id} are killed by exactly the tests they name"
        yield claim_about(number, exact, faults_are_killed, *about, lab.id)
    alone = "every counted test kills a fault that no other of its lab kills"
    yield claim_about(number, alone, tests_earn_their_place, *about)
    for folder in other_implementations(bench, chapter):
        green = f"the implementation {folder.name} is green, extra tests included"
        yield claim_about(number, green, other_is_green, *about, folder)
        same = f"portable faults have the same verdict on {folder.name}"
        yield claim_about(number, same, faults_are_the_same_on, *about, folder)


def other_implementations(bench: Workbench, chapter: Chapter) -> list[Path]:
    """Folders of teaching files written by others: tests/second/NN/<name>/src/…, in the course's checkout."""
    folder = bench.course.root / "tests" / "second" / chapter.id
    return sorted(path for path in folder.iterdir() if (path / "src").is_dir()) if folder.is_dir() else []


def _other_tree(bench: Workbench, chapter: Chapter, folder: Path) -> Path:
    def make(path: Path) -> None:
        shutil.copytree(bench.target(chapter), path)
        write_tree({f"src/{name}": data for name, data in read_tree(folder / "src").items()}, path)

    return bench.once(f"other-{chapter.id}-{folder.name}", make)


def other_is_green(bench: Workbench, chapter: Chapter, folder: Path) -> str:
    """Every test of the chapter, the extra ones included, on an implementation by others."""
    run = bench.run(chapter, _other_tree(bench, chapter, folder), list(lab_tests(chapter)))
    if red := what_is_red(run):
        raise ClaimFalse(red)
    extra = len(run.of_marker(chapter.extra_marker))
    return f"{len(run.tests) - extra}/{chapter.test_count}, {extra} extra"


def _results(bench: Workbench, chapter: Chapter) -> list[DrillResult]:
    """The chapter's drills on the reference."""

    def drill() -> list[DrillResult]:
        return _drill(bench, chapter, Subject(name=REFERENCE, tree=bench.target(chapter)))

    return bench.shared(f"drills {chapter.id}", drill)


def _drill(bench: Workbench, chapter: Chapter, subject: Subject) -> list[DrillResult]:
    faults = [(f, form) for f in chapter_faults(chapter) for form in f.forms if form in subject.forms]
    workers = workers_for(len(faults))
    with (
        Series(bench.course, chapter, subject, workers, narrow=True) as series,
        ThreadPoolExecutor(workers) as pool,
    ):
        return list(series.run(faults, series.baseline(), pool))


def faults_are_killed(bench: Workbench, chapter: Chapter, lab_id: str) -> str:
    """Each fault of the lab in each form, by the named tests and by no other of the lab."""
    results = [result for result in _results(bench, chapter) if result.fault.entry.lab == lab_id]
    if not results:
        raise ClaimFalse("the lab has no fault")
    for result in results:
        _demand_exact(result)
    portable = sum(result.form is Form.PORTABLE for result in results)
    if not portable:
        raise ClaimFalse("none of the lab's faults has a portable form")
    faults = {result.fault.name for result in results}
    return f"{counted(len(faults), 'fault')}, {portable} with a portable form"


def tests_earn_their_place(bench: Workbench, chapter: Chapter) -> str:
    """Each counted test kills a fault alone in its lab, or `overlaps` in lab.toml says why not."""
    alone: set[str] = set()
    for result in _results(bench, chapter):
        killers = _lab_killers(result)
        alone |= set(killers) if len(killers) == 1 else set()
    run = bench.reference_run(chapter)
    idle = []
    for lab in chapter.manifest.lab:
        tests = [test.name for test in run.of_marker(lab.marker)]
        for name in lab.overlaps:
            if name not in tests:
                raise ClaimFalse(f"`overlaps` of Lab {lab.id} names {name}, which is no test of it")
        idle += [name for name in tests if name not in alone and name not in lab.overlaps]
    if idle:
        more = f", nor do {len(idle) - 1} more" if idle[1:] else ""
        raise ClaimFalse(f"{idle[0]} kills no fault alone{more}")
    return counted(chapter.test_count, "test")


def faults_are_the_same_on(bench: Workbench, chapter: Chapter, folder: Path) -> str:
    """The portable faults on another implementation, against the verdicts on the reference."""
    portable = [result for result in _results(bench, chapter) if result.form is Form.PORTABLE]
    there = {result.fault.name: sorted(_lab_killers(result)) for result in portable}
    tree = _other_tree(bench, chapter, folder)
    results = _drill(bench, chapter, Subject(name=f"the implementation {folder.name}", tree=tree))
    for result in results:
        killers = sorted(_lab_killers(result))
        if result.verdict is not Verdict.CAUGHT or killers != there[result.fault.name]:
            by, wanted = (", ".join(names) or "none" for names in (killers, there[result.fault.name]))
            told = f" ({result.remark})" if result.remark else ""
            raise ClaimFalse(
                f"{result.fault.name} is {result.verdict.value}, killed by {by}{told}, "
                f"on the reference by {wanted}"
            )
    return counted(len(results), "fault")


def _lab_killers(result: DrillResult) -> list[str]:
    return [name for name in result.killers if name in result.lab_tests]


def _demand_exact(result: DrillResult) -> None:
    what = f"{result.fault.name} ({result.form.value})"
    named = result.fault.entry.tests
    strange = [name for name in named if result.lab_tests and name not in result.lab_tests]
    if strange:
        lab = result.fault.entry.lab
        raise ClaimFalse(f"{result.fault.name} names {strange[0]}, which is no counted test of Lab {lab}")
    if result.verdict is not Verdict.CAUGHT:
        raise ClaimFalse(f"{what} {result.verdict.value}: {result.remark}")
    others = set(_lab_killers(result)) - set(named)
    if others:
        raise ClaimFalse(f"{what} is killed by {min(others)} too, which lab.toml does not name")
    red = [name for name in sorted(result.lab_tests) if result.cells.get(name) not in ("green", "killed")]
    if red:
        raise ClaimFalse(f"{what} makes {red[0]} red without a kill: {result.cells.get(red[0])}")
