"""What has to hold between the keys of a manifest, and between a chapter's manifest and its course's."""

from __future__ import annotations

import keyword
import re
from itertools import pairwise

from course.manifest import ChapterManifest, CourseManifest, EditionManifest, ManifestError, Text

_LAB_ID = re.compile(r"[0-9]{2,}\.[1-9][0-9]*")
_FAULT_NAME = re.compile(r"[0-9]{2,}\.[1-9][0-9]*-[a-z0-9]+(-[a-z0-9]+)*")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_TEACHING_FILE = re.compile(r"src/.+\.py")
_FOCUS_TEST = re.compile(r"tests/test_[^/]+\.py")


def check_course(manifest: CourseManifest, name: str) -> None:
    """Check the relations inside course.toml. Raises ManifestError."""
    if not manifest.languages:
        raise ManifestError(name, "languages", 'expected at least one language, as ["en"]')
    if not manifest.chapters:
        raise ManifestError(name, "chapters", 'expected at least one chapter id, as ["00"]')
    for index, language in enumerate(manifest.languages):
        if not _LANGUAGE.fullmatch(language) or language in manifest.languages[:index]:
            raise ManifestError(
                name, f"languages[{index}]", f'expected codes as "en", each once, got {language!r}'
            )
    for index, chapter in enumerate(manifest.chapters):
        if not re.fullmatch(r"[0-9]{2,}", chapter):
            raise ManifestError(name, f"chapters[{index}]", f'expected two digits as "07", got {chapter!r}')
    numbers = [int(chapter) for chapter in manifest.chapters]
    if any(before >= after for before, after in pairwise(numbers)):
        raise ManifestError(name, "chapters", "expected rising ids, each once")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", manifest.id):
        raise ManifestError(
            name, "id", f"expected lower-case letters, digits and hyphens, got {manifest.id!r}"
        )
    if not manifest.package.isidentifier() or keyword.iskeyword(manifest.package):
        raise ManifestError(name, "package", f"expected a Python package name, got {manifest.package!r}")
    check_text(manifest.title, manifest.languages, name, "title")


def check_edition(edition: EditionManifest, course: CourseManifest, name: str) -> None:
    """Check that edition.toml names chapters of the course. Raises ManifestError."""
    if edition.hides not in course.chapters:
        raise ManifestError(name, "hides", f"expected a chapter of course.toml, got {edition.hides!r}")
    for index, chapter in enumerate(edition.withheld):
        if chapter not in course.chapters:
            raise ManifestError(
                name, f"withheld[{index}]", f"expected a chapter of course.toml, got {chapter!r}"
            )


def check_chapter(manifest: ChapterManifest, course: CourseManifest, name: str) -> None:
    """Check the relations inside a lab.toml against its course. Raises ManifestError."""
    position = course.chapters.index(manifest.id) if manifest.id in course.chapters else -1
    if position < 0:
        raise ManifestError(name, "id", f"expected a chapter of course.toml, got {manifest.id!r}")
    parent = course.chapters[position - 1] if position else None
    if manifest.parent != parent:
        wanted = f'"{parent}", the chapter before it' if parent else "no parent: it is the first chapter"
        raise ManifestError(name, "parent", f"expected {wanted}, got {manifest.parent!r}")
    for index, file in enumerate(manifest.teaching_files):
        if not _TEACHING_FILE.fullmatch(file) or not _is_inside(file):
            key, wanted = f"teaching_files[{index}]", f"src/{course.package}/file.py"
            raise ManifestError(name, key, f'expected a path in the tree as "{wanted}", got {file!r}')
    if not _FOCUS_TEST.fullmatch(manifest.focus_test):
        wanted = f"tests/test_{manifest.id}_topic.py"
        raise ManifestError(name, "focus_test", f'expected "{wanted}", got {manifest.focus_test!r}')
    for key in ("title", "summary"):
        check_text(getattr(manifest, key), course.languages, name, key)
    if manifest.mode == "foundation":
        if manifest.lab or manifest.fault:
            raise ManifestError(name, "mode", 'expected "practice" for a chapter with labs or faults')
        return
    if not manifest.lab:
        raise ManifestError(name, "lab", "expected at least one [[lab]] in a practice chapter")
    if not manifest.teaching_files:
        raise ManifestError(name, "teaching_files", "expected at least one file that learners edit")
    if manifest.first_step is None:
        raise ManifestError(name, "first_step", "expected a text: the first thing a learner does")
    check_text(manifest.first_step, course.languages, name, "first_step")
    _check_labs(manifest, course, name)
    _check_faults(manifest, course, name)
    _check_acceptance(manifest, name)


def _check_labs(manifest: ChapterManifest, course: CourseManifest, name: str) -> None:
    for index, lab in enumerate(manifest.lab):
        key = f"lab[{index}]"
        wanted = f"{manifest.id}.{index + 1}"
        if lab.id != wanted or not _LAB_ID.fullmatch(lab.id):
            raise ManifestError(name, f"{key}.id", f'expected "{wanted}" (labs count from 1), got {lab.id!r}')
        marker = "lab" + lab.id.replace(".", "_")
        if lab.marker != marker:
            raise ManifestError(name, f"{key}.marker", f'expected "{marker}", got {lab.marker!r}')
        if lab.tests < 1:
            raise ManifestError(name, f"{key}.tests", f"expected a count of at least 1, got {lab.tests}")
        if not lab.first_red.strip() or lab.first_red.splitlines() != [lab.first_red]:
            raise ManifestError(
                name, f"{key}.first_red", "expected the scaffold's exact message, in one line"
            )
        for field in ("title", "goal"):
            check_text(getattr(lab, field), course.languages, name, f"{key}.{field}")


def _check_faults(manifest: ChapterManifest, course: CourseManifest, name: str) -> None:
    labs = {lab.id for lab in manifest.lab}
    names: set[str] = set()
    for index, fault in enumerate(manifest.fault):
        key = f"fault[{index}]"
        if not _FAULT_NAME.fullmatch(fault.name) or not fault.name.startswith(f"{fault.lab}-"):
            raise ManifestError(
                name, f"{key}.name", f'expected "{fault.lab}-what-goes-wrong", got {fault.name!r}'
            )
        if fault.name in names:
            raise ManifestError(
                name, f"{key}.name", f"expected each name once, {fault.name!r} is there twice"
            )
        names.add(fault.name)
        if fault.lab not in labs:
            raise ManifestError(name, f"{key}.lab", f"expected a lab of this chapter, got {fault.lab!r}")
        if not fault.tests:
            raise ManifestError(name, f"{key}.tests", "expected the tests that must kill it")
        for field in ("summary", "reason"):
            check_text(getattr(fault, field), course.languages, name, f"{key}.{field}")
    for index, wanted in enumerate(manifest.transfer.faults if manifest.transfer else []):
        if wanted not in names:
            raise ManifestError(
                name, f"transfer.faults[{index}]", f"expected a fault of this file, got {wanted!r}"
            )


def _check_acceptance(manifest: ChapterManifest, name: str) -> None:
    labs = {lab.id for lab in manifest.lab}
    faults = {fault.name for fault in manifest.fault}
    for index, line in enumerate(manifest.acceptance):
        key = f"acceptance[{index}]"
        if line.check in ("lab", "first_red") and line.lab not in labs:
            raise ManifestError(name, f"{key}.lab", f"expected a lab of this chapter, got {line.lab!r}")
        if line.check.startswith("fault_") and line.fault not in faults:
            raise ManifestError(name, f"{key}.fault", f"expected a fault of this chapter, got {line.fault!r}")


def check_text(text: Text, languages: list[str], name: str, key: str) -> None:
    """Check that a text is there, and not blank, in each of the course's languages. Raises ManifestError."""
    for language in languages:
        if not text.get(language, "").strip():
            raise ManifestError(name, f"{key}.{language}", "expected a text that is not blank")
    for language in text:
        if language not in languages:
            raise ManifestError(name, f"{key}.{language}", f"expected one of {', '.join(languages)}")


def _is_inside(path: str) -> bool:
    return "\\" not in path and not any(part in ("", ".", "..") for part in path.split("/"))
