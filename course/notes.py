"""The engine's own notes in a practice, one JSON file each in .course/, that survive damage."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from course.errors import EnvironmentFault
from course.practice import Practice

FORMAT = 1


class Note:
    """One note of a practice: a JSON object under a name, as `hints`."""

    def __init__(self, practice: Practice, name: str) -> None:
        self.file = practice.state / f"{name}.json"

    @property
    def is_damaged(self) -> bool:
        """Whether something lies under the note's name that is none."""
        return os.path.lexists(self.file) and self._parsed() is None

    def read(self) -> dict[str, Any]:
        """What the note holds; nothing where it is missing or damaged."""
        return self._parsed() or {}

    def write(self, data: dict[str, Any]) -> None:
        """Replace the note, whole or not at all; a damaged one is kept beside it. Raises EnvironmentFault."""
        text = json.dumps({"format": FORMAT, **data}, ensure_ascii=False, indent=1)
        fresh = self.file.with_name(f".{self.file.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            self.file.parent.mkdir(exist_ok=True)
            fresh.write_bytes(text.encode("utf-8", "backslashreplace"))
            if self.is_damaged:
                self.file.rename(self._aside())
            fresh.replace(self.file)
        except OSError as error:
            raise EnvironmentFault(
                f"{self.file} can't be written: {error.strerror}.", "`course doctor` says what is in the way."
            ) from error
        finally:
            fresh.unlink(missing_ok=True)

    def _parsed(self) -> dict[str, Any] | None:
        try:
            data = json.loads(self.file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) and data.get("format") == FORMAT else None

    def _aside(self) -> Path:
        names = (self.file.with_name(f"{self.file.name}.damaged-{n}") for n in range(1, 10_000))
        return next(name for name in names if not os.path.lexists(name))
