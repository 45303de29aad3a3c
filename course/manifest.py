"""The manifests' shapes, and what is wrong with one: course.toml, lab.toml, hints.toml, quiz.toml.

Decision: msgspec decodes and checks types, the few relations between keys are checked here, because an author
needs file, key and expectation in one sentence.
"""

from __future__ import annotations

import keyword
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from course.errors import CourseError

FORMAT = 1
Text = dict[str, str]

_LAB_ID = re.compile(r"[0-9]{2,}\.[1-9][0-9]*")
_FAULT_NAME = re.compile(r"[0-9]{2,}\.[1-9][0-9]*-[a-z0-9]+(-[a-z0-9]+)*")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_TEACHING_FILE = re.compile(r"src/.+\.py")
_FOCUS_TEST = re.compile(r"tests/test_[^/]+\.py")
_FIELD_FAULTS = (
    (r"object missing required field `(.+)`", "expected, it is missing"),
    (r"object contains unknown field `(.+)`", "expected no such key"),
)


class ManifestError(CourseError):
    """A manifest that can't be used; the text gives file, key and what was expected."""

    def __init__(self, file: str, key: str, expected: str) -> None:
        where = f"`{key}`: " if key else ""
        super().__init__(f"{file}: {where}{expected}", "Mend the manifest, then run `course verify`.")
        self.file = file
        self.key = key


class CourseManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """checkpoints/course.toml."""

    format: int
    id: str
    title: Text
    languages: list[str]
    package: str
    chapters: list[str]


class LabEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[lab]]` of a chapter."""

    id: str
    marker: str
    tests: int
    first_red: str
    title: Text
    goal: Text
    completes: list[str] = []
    overlaps: Text = {}


class FaultEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[fault]]`: a realistic mistake and the tests that must kill it."""

    name: str
    lab: str
    tests: list[str]
    summary: Text
    reason: Text
    raises: list[str] = []
    waits: bool = False


class AcceptanceLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[acceptance]]`: a line of the record and the check that may print it."""

    check: Literal["build", "first_red", "lab", "fault_injected", "fault_restored", "chapter", "through"]
    line: str
    lab: str | None = None
    fault: str | None = None


class TransferEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[transfer]`: the faults that a learner's own transfer test has to catch.

    With `module`, the test imports an adapter of that name instead: those shipped under `transfer/`.
    """

    faults: list[str] = []
    module: str | None = None


class ChapterManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """labs/NN/lab.toml."""

    format: int
    id: str
    mode: Literal["foundation", "practice"]
    title: Text
    summary: Text
    teaching_files: list[str]
    focus_test: str
    parent: str | None = None
    first_step: Text | None = None
    lab: list[LabEntry] = []
    fault: list[FaultEntry] = []
    acceptance: list[AcceptanceLine] = []
    transfer: TransferEntry | None = None


class HintsManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """labs/NN/hints.toml: per lab id, hints from general to specific."""

    format: int
    hints: dict[str, list[Text]]


class QuizQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[question]]`: asked before, answered by the run of `test`."""

    ask: Text
    answer: Text
    lab: str | None = None
    test: str | None = None


class QuizManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """labs/NN/quiz.toml."""

    format: int
    question: list[QuizQuestion] = []


S = TypeVar("S", bound=msgspec.Struct)


def read_manifest(path: Path, shape: type[S], name: str) -> S:
    """Read one TOML manifest; `name` is how messages call the file. Raises ManifestError."""
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    except FileNotFoundError:
        raise ManifestError(name, "", "the file is missing") from None
    except OSError as error:
        raise ManifestError(name, "", f"can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ManifestError(name, "", f"expected UTF-8 text, byte {error.start} is not") from error
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(name, "", f"expected TOML: {error}") from error
    return convert_manifest(data, shape, name)


def convert_manifest(data: dict[str, Any], shape: type[S], name: str) -> S:
    """Check parsed TOML against a manifest's shape. Raises ManifestError."""
    if data.get("format", FORMAT) != FORMAT:
        raise ManifestError(name, "format", f"expected {FORMAT}, got {data['format']!r}")
    try:
        return msgspec.convert(data, shape)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        key, text = path.rstrip("`").lstrip("."), text[:1].lower() + text[1:]
        for words, expectation in _FIELD_FAULTS:
            if match := re.fullmatch(words, text):
                key, text = f"{key}.{match[1]}".lstrip("."), expectation
        raise ManifestError(name, key, text) from error


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
