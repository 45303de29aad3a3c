"""Every claim of the gate, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from course.catalog import Chapter, load_course
from course.history import build_history
from course.pins import PinError, pin_mismatches, read_pins
from course.verify.bench import Workbench
from course.verify.blocks import commands_run
from course.verify.builds import practice_is_made_twice, starter_builds, target_builds
from course.verify.claim import Claim, ClaimFalse, claim_about, counted
from course.verify.contents import acceptance_is_whole, folders_are_declared
from course.verify.drills import fault_claims
from course.verify.editions import edition_hides
from course.verify.runs import (
    earlier_are_green,
    first_red_is_exact,
    own_tests_are_green,
    reference_is_green,
    stage_is_done,
    starter_is_scaffold,
    tests_are_steady,
)
from course.verify.secrecy import practice_hides, starter_hides
from course.verify.texts import hints_hide, quiz_is_shown, texts_agree

MANIFESTS = "every manifest can be used"


def course_claims(bench: Workbench) -> Iterator[Claim]:
    """The claims about the course as a whole."""
    yield claim_about("", MANIFESTS, _manifests_are_good, bench)
    yield claim_about("", "the commit ids equal the pins", _pins_hold, bench)
    yield claim_about("", "built twice, the history is the same", _history_is_made_twice, bench)


def _manifests_are_good(bench: Workbench) -> str:
    course = load_course(bench.course.root)
    return f"{counted(len(course.chapters), 'chapter')}, {len(course.practice_chapters)} to practise"


def _pins_hold(bench: Workbench) -> str:
    if read_pins(bench.course) is None:
        raise ClaimFalse("there is no checkpoints/history.toml; `course pin` writes it")
    try:
        ids = bench.history.checkpoints
    except PinError as error:
        raise ClaimFalse(error.message) from error
    if wrong := pin_mismatches(bench.course, ids):
        differ = (
            f"checkpoint {wrong[0]} differs" if len(wrong) == 1 else f"checkpoints {', '.join(wrong)} differ"
        )
        raise ClaimFalse(f"{differ}; `course pin` renews the pins")
    return counted(len(ids), "checkpoint")


def _history_is_made_twice(bench: Workbench) -> str:
    """Build the history anew, in a folder of its own, and compare every id."""
    history, again = bench.history, build_history(bench.course, bench.folder / "again")
    count = 0
    for kind in ("checkpoints", "stages", "practices"):
        first, second = getattr(history, kind), getattr(again, kind)
        for key in sorted(first.keys() | second.keys()):
            count += 1
            if first.get(key) != second.get(key):
                raise ClaimFalse(f"{kind} {key}: {first.get(key)} the first time, {second.get(key)} again")
    return counted(count, "commit")


def chapter_claims(bench: Workbench, chapter: Chapter) -> Iterator[Claim]:
    """The claims about one chapter."""
    about = (bench, chapter)
    yield claim_about(chapter.id, "its folders hold what lab.toml declares", folders_are_declared, *about)
    yield claim_about(chapter.id, "the target builds", target_builds, *about)
    if chapter.is_practice:
        yield from _practice_claims(bench, chapter)
    else:
        yield claim_about(chapter.id, "its own tests are green", own_tests_are_green, *about)
    yield claim_about(chapter.id, "the handouts agree", texts_agree, *about)
    commands = claim_about(chapter.id, "every command of the handout runs", commands_run, *about)
    yield replace(commands, long=chapter.is_practice)


def _practice_claims(bench: Workbench, chapter: Chapter) -> Iterator[Claim]:
    number, about = chapter.id, (bench, chapter)
    for language in bench.course.manifest.languages:
        yield claim_about(number, f"the starter builds ({language})", starter_builds, *about, language)
    yield claim_about(number, "the starter holds no answer", starter_hides, *about)
    for language in bench.course.manifest.languages:
        made = f"a practice made twice is the same, one commit after its parent ({language})"
        yield claim_about(number, made, practice_is_made_twice, *about, language)
        hides = f"a generated practice hides every answer ({language})"
        yield claim_about(number, hides, practice_hides, *about, language)
    yield claim_about(number, "a learner's edition hides every answer", edition_hides, *about)
    yield claim_about(number, "the first red is exact", first_red_is_exact, *about)
    yield claim_about(number, "in the starter every lab is at a scaffold", starter_is_scaffold, *about)
    for lab in chapter.manifest.lab:
        yield claim_about(
            number, f"Lab {lab.id} can be done alone, in its turn", stage_is_done, *about, lab.id
        )
    green = "the reference is green, counts and markers as in the manifest"
    yield claim_about(number, green, reference_is_green, *about)
    yield claim_about(
        number, "with the reference every earlier chapter is green too", earlier_are_green, *about
    )
    yield from fault_claims(bench, chapter)
    steady = "tests give the same again, in any order, and from elsewhere"
    yield claim_about(number, steady, tests_are_steady, *about)
    yield claim_about(number, "the acceptance lines show every lab", acceptance_is_whole, *about)
    yield claim_about(number, "hints hold no answer", hints_hide, *about)
    yield claim_about(number, "every quiz answer is shown by a test", quiz_is_shown, *about)
