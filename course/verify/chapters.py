"""The claims about one chapter: what it builds to, what its labs show, what its reference does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from course.build import BuildFailed, build
from course.catalog import Chapter
from course.judge import TestRun
from course.labs import count_lab, lab_run, run_tests, teaching_modules
from course.outcome import RunOutcome, Status, TestOutcome
from course.pins import pin_mismatches, read_pins
from course.process import child_environment, run_process
from course.trees import lab_tests
from course.verify.bench import Workbench
from course.verify.claim import Claim, ClaimBroken, ClaimFalse
from course.verify.drills import fault_claims
from course.verify.secrecy import practice_hides, starter_hides
from course.verify.texts import hints_hide, quiz_is_shown, texts_agree

_DEADLINE = 300.0


def course_claims(bench: Workbench) -> Iterator[Claim]:
    """The claims about the course as a whole."""

    def pins() -> str:
        wrong = pin_mismatches(bench.course, bench.history.checkpoints)
        if read_pins(bench.course) is None:
            raise ClaimFalse("there is no checkpoints/history.toml; `course pin` writes it")
        if wrong:
            raise ClaimFalse(f"checkpoints {', '.join(wrong)} differ; `course pin` renews the pins")
        return f"{len(bench.history.checkpoints)} checkpoints"

    yield Claim(chapter="", sentence="the commit ids equal the pins", prove=pins)
    yield Claim(chapter="", sentence="built twice, the history is the same", prove=bench.built_twice)


def chapter_claims(bench: Workbench, chapter: Chapter) -> Iterator[Claim]:
    """The claims about one chapter, in the order in which they are told."""

    def claim(sentence: str, prove: object, *arguments: object) -> Claim:
        assert callable(prove)
        return Claim(chapter=chapter.id, sentence=sentence, prove=lambda: prove(bench, chapter, *arguments))

    yield claim("the target builds", _target_builds)
    if not chapter.is_practice:
        yield claim("its own tests are green", _own_tests_green)
        yield claim("the two handouts agree", texts_agree)
        return
    for language in bench.course.manifest.languages:
        yield claim(f"the starter builds ({language})", _starter_builds, language)
    yield claim("the starter holds no answer", starter_hides)
    for language in bench.course.manifest.languages:
        yield claim(f"a generated practice hides every answer ({language})", practice_hides, language)
    yield claim("the first red is exact", _first_red)
    yield claim("in the starter every lab is at a scaffold", _starter_scaffolds)
    for lab in chapter.manifest.lab:
        yield claim(f"Lab {lab.id} can be done alone, in its turn", _stage, lab.id)
    yield claim("the reference is green, counts and markers as in the manifest", _reference)
    yield claim("with the reference every earlier chapter is green too", _through)
    yield from fault_claims(bench, chapter)
    yield claim("tests give the same in any order, twice, and from elsewhere", _steady)
    yield claim("the handouts agree", texts_agree)
    yield claim("hints hold no answer", hints_hide)
    yield claim("every quiz answer is shown by a test", quiz_is_shown)


def _target_builds(bench: Workbench, chapter: Chapter) -> str:
    return _builds(bench.target(chapter), bench.course.manifest.package)


def _starter_builds(bench: Workbench, chapter: Chapter, language: str) -> str:
    return _builds(bench.practice(chapter, language), bench.course.manifest.package)


def _builds(tree: Path, package: str) -> str:
    try:
        return f"{build(tree, package)} modules"
    except BuildFailed as failure:
        raise ClaimFalse(failure.message) from failure


def _own_tests_green(bench: Workbench, chapter: Chapter) -> str:
    files = list(lab_tests(chapter))
    if not files:
        raise ClaimFalse(f"labs/{chapter.id} has no test_*.py")
    run = _run(bench, chapter, bench.target(chapter), files)
    _demand_green(run)
    return f"{len(run.tests)} tests"


def _run(
    bench: Workbench, chapter: Chapter, tree: Path, files: list[str], expression: str = ""
) -> RunOutcome:
    return run_tests(
        TestRun(
            tree=tree,
            package=bench.course.manifest.package,
            modules=teaching_modules(chapter),
            files=files,
            expression=expression,
            deadline=_DEADLINE,
        )
    )


def _demand_sound(run: RunOutcome) -> RunOutcome:
    if run.status is Status.BROKEN:
        raise ClaimBroken(run.cause)
    return run


def _demand_green(run: RunOutcome) -> None:
    _demand_sound(run)
    if run.status is not Status.PASSED:
        raise ClaimFalse(_what_is_red(run))


def _what_is_red(run: RunOutcome) -> str:
    if run.cause:
        return run.cause
    for test in run.tests:
        if test.status is not Status.PASSED:
            return f"{test.name}: {_headline(test)}"
    return run.status.value


def _headline(test: TestOutcome) -> str:
    return test.failure.headline if test.failure is not None else test.status.value


def _first_red(bench: Workbench, chapter: Chapter) -> str:
    """A plain pytest run in a real practice, as a learner does it first."""
    lab = chapter.manifest.lab[0]
    tree = bench.practice(chapter, bench.course.manifest.languages[0])
    finished = run_process(
        [sys.executable, "-m", "pytest", "-m", lab.marker, "-p", "no:cacheprovider"],
        cwd=tree,
        env=child_environment(),
        deadline=_DEADLINE,
    )
    lines = [line.strip() for line in finished.stdout.splitlines()]
    wanted = f"Lab {lab.id} 0/{lab.tests} · first red: {lab.first_red}"
    if wanted not in lines:
        raise ClaimFalse(f"expected the closing line {wanted!r}, got {lines[-3:]}")
    if not any(
        f" {lab.tests} failed" in f" {line.strip('= ')}" and "passed" not in line for line in lines[-3:]
    ):
        raise ClaimFalse(f"expected {lab.tests} failed and nothing else, got {lines[-1]!r}")
    run = _demand_sound(run_tests(lab_run(bench.course, chapter, tree, [lab], deadline=_DEADLINE)))
    for test in run.of_marker(lab.marker):
        _demand_scaffold(test, {lab.first_red})
    return wanted


def _demand_scaffold(test: TestOutcome, messages: set[str]) -> None:
    failure = test.failure
    if failure is None:
        raise ClaimFalse(f"{test.name} is {test.status.value}, expected a scaffold's red")
    if (
        failure.types[:1] != ("NotImplementedError",)
        or failure.message not in messages
        or failure.phase != "call"
    ):
        raise ClaimFalse(
            f"{test.name}: expected NotImplementedError {sorted(messages)}, got {failure.headline}"
        )


def _starter_scaffolds(bench: Workbench, chapter: Chapter) -> str:
    tree = bench.practice(chapter, bench.course.manifest.languages[0])
    return _scaffolds_after(bench, chapter, tree, done=0)


def _stage(bench: Workbench, chapter: Chapter, lab_id: str) -> str:
    done = [lab.id for lab in chapter.manifest.lab].index(lab_id) + 1
    return _scaffolds_after(bench, chapter, bench.stage(lab_id), done)


def _scaffolds_after(bench: Workbench, chapter: Chapter, tree: Path, done: int) -> str:
    """The first `done` labs are green, the next shows its own scaffold, later ones an unfinished lab's."""
    labs = chapter.manifest.lab
    run = _demand_sound(run_tests(lab_run(bench.course, chapter, tree, labs, deadline=_DEADLINE)))
    unfinished = {lab.first_red for lab in labs[done:]}
    for index, lab in enumerate(labs):
        tests = run.of_marker(lab.marker)
        if len(tests) != lab.tests:
            raise ClaimFalse(f"{len(tests)} tests carry {lab.marker}, the manifest has {lab.tests}")
        for test in tests:
            if index < done:
                if test.status is not Status.PASSED:
                    raise ClaimFalse(f"{test.name} of Lab {lab.id}: {_headline(test)}")
            else:
                _demand_scaffold(test, {lab.first_red} if index == done else unfinished)
    return " ".join(count_lab(lab, run).line.partition(" · ")[0] for lab in labs[:done])


def _reference(bench: Workbench, chapter: Chapter) -> str:
    run = _run(bench, chapter, bench.target(chapter), list(lab_tests(chapter)))
    _demand_green(run)
    markers = {lab.marker for lab in chapter.manifest.lab}
    for lab in chapter.manifest.lab:
        outcome = count_lab(lab, run)
        if outcome.status is not Status.PASSED:
            raise ClaimFalse(outcome.line)
    for test in run.tests:
        carried = test.markers & markers
        if len(carried) > 1:
            raise ClaimFalse(f"{test.name} carries {' and '.join(sorted(carried))}")
        if carried and chapter.marker not in test.markers:
            raise ClaimFalse(f"{test.name} lacks the marker {chapter.marker}")
        if not carried and chapter.extra_marker not in test.markers:
            raise ClaimFalse(f"{test.name} carries neither a lab's marker nor {chapter.extra_marker}")
        if carried and not test.rule:
            raise ClaimFalse(f"{test.name} has no docstring that states its rule")
    names = {test.name for test in run.tests if test.markers & markers}
    for fault in chapter.manifest.fault:
        for name in fault.tests:
            if name not in names:
                raise ClaimFalse(f"fault {fault.name} names {name}, which is no counted test")
    extra = sum(chapter.extra_marker in test.markers for test in run.tests)
    return f"{chapter.test_count}/{chapter.test_count}, {extra} extra"


def _through(bench: Workbench, chapter: Chapter) -> str:
    run = _run(bench, chapter, bench.target(chapter), ["tests"])
    _demand_green(run)
    return f"{len(run.tests)} tests through chapter {chapter.id}"


def _steady(bench: Workbench, chapter: Chapter) -> str:
    """The counted tests shuffled, again, and started from another directory."""
    tree = bench.target(chapter)
    labs = chapter.manifest.lab
    for changes in ({"shuffle": 1}, {"shuffle": 2}, {"elsewhere": True}):
        run = run_tests(lab_run(bench.course, chapter, tree, labs, deadline=_DEADLINE, **changes))
        if _demand_sound(run).status is not Status.PASSED:
            raise ClaimFalse(f"{next(iter(changes))}: {_what_is_red(run)}")
    return "3 runs"
