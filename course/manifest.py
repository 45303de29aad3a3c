"""The manifests' shapes, and how one is read: course.toml, lab.toml, hints.toml, quiz.toml.

Decision: msgspec decodes and checks types, and its sentences are turned round here, because an author needs
file, key and expectation in one sentence.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import tomli

from course.errors import CourseError

FORMAT = 1
Text = dict[str, str]

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


class EditionManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """checkpoints/edition.toml of a learner's edition: the first chapter whose reference is left out.

    `withheld` are later chapters whose starters grow out of what is left out, and which can't be begun here.
    """

    format: int
    hides: str
    withheld: list[str] = []


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
        data = tomli.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    except FileNotFoundError:
        raise ManifestError(name, "", "the file is missing") from None
    except OSError as error:
        raise ManifestError(name, "", f"can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ManifestError(name, "", f"expected UTF-8 text, byte {error.start} is not") from error
    except tomli.TOMLDecodeError as error:
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
