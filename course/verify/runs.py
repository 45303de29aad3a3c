"""The claims proven by running a chapter's tests: on the starter, on each stage, on the reference."""

from __future__ import annotations

import sys
from pathlib import Path

from course.catalog import Chapter
from course.labs import count_lab, lab_run, run_tests
from course.manifest import LabEntry
from course.outcome import RunOutcome, Status, TestOutcome
from course.process import child_environment, run_process
from course.trees import lab_tests
from course.verify.bench import DEADLINE, Workbench, sound
from course.verify.claim import ClaimBroken, ClaimFalse, counted


def own_tests_are_green(bench: Workbench, chapter: Chapter) -> str:
    """A foundation chapter's tests, where it ends."""
    run = bench.reference_run(chapter)
    _demand_green(run)
    return counted(len(run.tests), "test")


def _demand_green(run: RunOutcome) -> None:
    if red := what_is_red(run):
        raise ClaimFalse(red)


def what_is_red(run: RunOutcome) -> str:
    """Why a run is not green: its cause, or the first red test; else empty."""
    if run.cause:
        return run.cause
    for test in run.tests:
        if test.status is not Status.PASSED:
            return f"{test.name}: {_headline(test)}"
    return ""


def _headline(test: TestOutcome) -> str:
    return test.failure.headline if test.failure is not None else test.status.value


def first_red_is_exact(bench: Workbench, chapter: Chapter) -> str:
    """A plain pytest run in a real practice, as a learner does it first."""
    lab = chapter.manifest.lab[0]
    tree = bench.practice(chapter, bench.language, "red")
    command = [sys.executable, "-m", "pytest", "-m", lab.marker, "-p", "no:cacheprovider"]
    finished = run_process(command, cwd=tree, env=child_environment(), deadline=DEADLINE)
    lines = [line.strip("= ") for line in finished.stdout.splitlines() if line.strip()]
    wanted = f"Lab {lab.id} 0/{lab.tests} · first red: {lab.first_red}"
    if wanted not in lines:
        raise ClaimFalse(
            f"expected the closing line {wanted!r}, got {(lines or [finished.stderr.strip()])[-2:]}"
        )
    summary = next((line for line in reversed(lines) if " in " in line and "failed" in line), lines[-1])
    counts = summary.rpartition(" in ")[0].split(", ")
    if [count for count in counts if "deselected" not in count] != [f"{lab.tests} failed"]:
        raise ClaimFalse(f"expected {lab.tests} failed and nothing else, got {summary!r}")
    for test in _starter_run(bench, chapter).of_marker(lab.marker):
        _demand_scaffold(test, {lab.first_red})
    return wanted


def _starter_run(bench: Workbench, chapter: Chapter) -> RunOutcome:
    def start() -> RunOutcome:
        return _counted_tests(bench, chapter, bench.practice(chapter, bench.language, "red"))

    return bench.shared(f"starter run {chapter.id}", start)


def _counted_tests(bench: Workbench, chapter: Chapter, tree: Path) -> RunOutcome:
    run = lab_run(bench.course, chapter, tree, chapter.manifest.lab, deadline=DEADLINE)
    return sound(run_tests(run))


def _demand_scaffold(test: TestOutcome, messages: set[str]) -> None:
    failure = test.failure
    wanted = " or ".join(repr(message) for message in sorted(messages))
    if failure is None:
        raise ClaimFalse(f"{test.name} is {test.status.value}, expected NotImplementedError {wanted}")
    exact = failure.types[:1] == ("NotImplementedError",) and failure.message in messages
    if not exact or failure.phase != "call":
        where = "" if failure.phase == "call" else f" in its {failure.phase}"
        raise ClaimFalse(f"{test.name}: expected NotImplementedError {wanted}, got {failure.headline}{where}")


def starter_is_scaffold(bench: Workbench, chapter: Chapter) -> str:
    """Before any lab is done, the first shows its own scaffold, the others that of some lab."""
    run = _starter_run(bench, chapter)
    _demand_stage(chapter, run, done=0)
    return f"{counted(len(run.tests), 'test')} red"


def stage_is_done(bench: Workbench, chapter: Chapter, lab_id: str) -> str:
    """With the labs up to this one done they are green, the next one is at its own scaffold."""
    labs = chapter.manifest.lab
    done = [lab.id for lab in labs].index(lab_id) + 1
    run = _counted_tests(bench, chapter, bench.stage(lab_id))
    _demand_stage(chapter, run, done)
    return " ".join(count_lab(lab, run).line for lab in labs[:done])


def _demand_stage(chapter: Chapter, run: RunOutcome, done: int) -> None:
    """The first `done` labs are green, the next shows its own scaffold, later ones an unfinished lab's."""
    labs = chapter.manifest.lab
    unfinished = {lab.first_red for lab in labs[done:]}
    for index, lab in enumerate(labs):
        for test in _tests_of(lab, run):
            if index >= done:
                _demand_scaffold(test, {lab.first_red} if index == done else unfinished)
            elif test.status is not Status.PASSED:
                raise ClaimFalse(f"{test.name} of Lab {lab.id}: {_headline(test)}")


def _tests_of(lab: LabEntry, run: RunOutcome) -> tuple[TestOutcome, ...]:
    tests = run.of_marker(lab.marker)
    if len(tests) != lab.tests:
        carry = "1 test carries" if len(tests) == 1 else f"{len(tests)} tests carry"
        cause = f" ({run.cause})" if run.cause else ""
        raise ClaimFalse(f"{carry} {lab.marker}, the manifest has {lab.tests}{cause}")
    return tests


def reference_is_green(bench: Workbench, chapter: Chapter) -> str:
    """The chapter's tests on the reference; every one counted by one lab, or an extra."""
    run = bench.reference_run(chapter)
    _demand_green(run)
    for test in run.tests:
        _demand_markers(chapter, test)
    passed = sum(len(_tests_of(lab, run)) for lab in chapter.manifest.lab)
    return f"{passed}/{chapter.test_count}, {len(run.of_marker(chapter.extra_marker))} extra"


def _demand_markers(chapter: Chapter, test: TestOutcome) -> None:
    carried = sorted(test.markers & {lab.marker for lab in chapter.manifest.lab})
    if not carried and chapter.extra_marker not in test.markers:
        raise ClaimFalse(f"{test.name} carries neither a lab's marker nor {chapter.extra_marker}")
    if not carried:
        return
    if len(carried) > 1 or chapter.extra_marker in test.markers:
        both = [*carried, *({chapter.extra_marker} & test.markers)]
        raise ClaimFalse(f"{test.name} carries {' and '.join(both)}, a test is counted once")
    if chapter.marker not in test.markers:
        raise ClaimFalse(f"{test.name} lacks the marker {chapter.marker}")
    if test.file != chapter.manifest.focus_test:
        raise ClaimFalse(f"{test.name} is counted, and does not stand in {chapter.manifest.focus_test}")
    if not test.rule:
        raise ClaimFalse(f"{test.name} has no docstring that states its rule")


def earlier_are_green(bench: Workbench, chapter: Chapter) -> str:
    """All tests of the tree where the chapter ends, the earlier chapters' included."""
    run = bench.run(chapter, bench.target(chapter), ["tests"])
    _demand_green(run)
    return f"{counted(len(run.tests), 'test')} through chapter {chapter.id}"


def tests_are_steady(bench: Workbench, chapter: Chapter) -> str:
    """The chapter's tests once more, from the last to the first, and shuffled in another directory."""
    tree, files = bench.target(chapter), list(lab_tests(chapter))
    before = bench.reference_run(chapter)
    if not before.tests:
        raise ClaimBroken("no test was found")
    backwards = [f"{test.file}::{test.name}" for test in reversed(before.tests)]
    for how, names, changes in (
        ("run again", files, {}),
        ("from the last to the first", backwards, {}),
        ("shuffled, from another directory", files, {"shuffle": 1, "elsewhere": True}),
    ):
        run = bench.run(chapter, tree, names, **changes)
        if run.collect_failures or _verdicts(run) != _verdicts(before):
            raise ClaimFalse(f"{how}: {what_is_red(run) or 'other tests than before'}")
    return f"{counted(len(before.tests), 'test')}, 3 runs more"


def _verdicts(run: RunOutcome) -> dict[tuple[str, str], Status]:
    return {(test.file, test.name): test.status for test in run.tests}
