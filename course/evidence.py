"""What runs have shown in a practice: one JSON line each in .course/evidence.jsonl.

Decision: each line is one write at the file's end, under a lock where the system has one; a line torn by a
kill is closed by the next writer and passed over by readers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from course import __version__
from course.errors import EnvironmentFault
from course.outcome import LabOutcome
from course.practice import Practice

FORMAT = 1


class EvidenceError(EnvironmentFault):
    """The evidence can't be written."""


class Evidence:
    """The evidence of one practice."""

    def __init__(self, practice: Practice) -> None:
        self.file = practice.state / "evidence.jsonl"

    def add(self, kind: str, teaching: str, **facts: Any) -> None:
        """Append one line: its kind, the facts, and the hash of the teaching files that they hold for.

        Raises EvidenceError where it can't be written; a verdict is worth telling all the same.
        """
        entry = {
            "format": FORMAT,
            "kind": kind,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "teaching": teaching,
            "versions": versions(),
            **facts,
        }
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._append(line)
        except OSError as error:
            raise EvidenceError(
                f"{self.file} can't be written: {error.strerror}; what was seen is not recorded."
            ) from error

    def _append(self, line: bytes) -> None:
        self.file.parent.mkdir(exist_ok=True)
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            with _locked(descriptor):
                size = os.fstat(descriptor).st_size
                torn = (
                    size > 0 and os.pread(descriptor, 1, size - 1) != b"\n" if hasattr(os, "pread") else False
                )
                os.write(descriptor, (b"\n" if torn else b"") + line)
        finally:
            os.close(descriptor)

    def entries(self) -> list[dict[str, Any]]:
        """Every whole line, oldest first; torn and foreign ones are passed over."""
        try:
            lines = self.file.read_bytes().split(b"\n")
        except OSError:
            return []
        return [entry for line in lines if (entry := _parsed(line)) is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and entry.get("format") == FORMAT else None


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        yield
        return
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield


def teaching_hash(root: Path, teaching_files: Sequence[str]) -> str:
    """A hash of the teaching files as they are now; a missing one counts as missing."""
    digest = hashlib.sha256()
    for name in teaching_files:
        file = root / name
        data = file.read_bytes() if file.is_file() else b"\0missing"
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:32]


def versions() -> dict[str, str]:
    """What a verdict may depend on."""
    return {"course": __version__, "python": platform.python_version(), "pytest": version("pytest")}


def lab_facts(outcome: LabOutcome, first_red: str) -> dict[str, Any]:
    """A lab's outcome as evidence; `exact` says whether its first red is the scaffold's own message."""
    failure = outcome.first_red.failure if outcome.first_red is not None else None
    exact = (
        failure is not None and failure.types[:1] == ("NotImplementedError",) and failure.message == first_red
    )
    return {
        "lab": outcome.lab,
        "passed": outcome.passed,
        "tests": outcome.expected,
        "status": outcome.status.value,
        "first_red": failure.headline if failure is not None else None,
        "exact": exact,
    }
