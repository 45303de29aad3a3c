"""The pinned commit ids of a course's checkpoints, in checkpoints/history.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from course.catalog import Course
from course.errors import CourseError, EnvironmentFault
from course.manifest import FORMAT, ManifestError


class PinError(CourseError):
    """The commit ids that the contents give are not those that history.toml pins."""


def read_pins(course: Course) -> dict[str, str] | None:
    """The pinned commit id of each checkpoint, None without a history.toml. Raises ManifestError."""
    name = "checkpoints/history.toml"
    try:
        data = tomllib.loads((course.root / name).read_text("utf-8-sig"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ManifestError(name, "", f"expected TOML as `course pin` writes it: {error}") from error
    pins = data.get("checkpoints")
    if data.get("format") != FORMAT or not isinstance(pins, dict):
        raise ManifestError(name, "checkpoints", "expected a table of commit ids as `course pin` writes it")
    return {str(key): str(value) for key, value in pins.items()}


def write_pins(course: Course, ids: Mapping[str, str]) -> Path:
    """Write history.toml anew, whole or not at all; give its path."""
    path = course.root / "checkpoints" / "history.toml"
    lines = [f"format = {FORMAT}", "", "[checkpoints]"]
    lines += [f'{chapter} = "{commit}"' for chapter, commit in ids.items()]
    fresh = path.with_name(f".history.toml.{os.getpid()}")
    try:
        fresh.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise EnvironmentFault(f"{path} can't be written: {error.strerror}.") from error
    return path


def pin_mismatches(course: Course, ids: Mapping[str, str]) -> list[str]:
    """The chapters whose commit id is not the pinned one, or that are pinned without being there.

    In a learner's edition those that it leaves out are not there.
    """
    pins = read_pins(course) or {}
    keys = ids.keys() if course.edition is not None else pins.keys() | ids.keys()
    return sorted(key for key in keys if pins.get(key) != ids.get(key))


def check_pins(course: Course, ids: Mapping[str, str]) -> None:
    """Hold an installed course to its pins. Raises PinError."""
    wrong = pin_mismatches(course, ids)
    if wrong:
        raise PinError(
            f"The installed course {course.manifest.id} is not what was pinned: checkpoints "
            f"{', '.join(wrong)} differ.",
            f"Its files under {course.root} were changed, or the wheel is damaged: install it again.",
        )
