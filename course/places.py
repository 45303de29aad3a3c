"""Where courses lie: what the top of one is, and the courses that wheels have brought."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course.errors import EnvironmentFault

ENTRY_POINTS = "course.courses"
CONTENT_FOLDERS = ("checkpoints", "labs", "starters", "solutions")


class CourseDamaged(EnvironmentFault):
    """An installed course can't be found where its wheel says that it lies."""


@dataclass(frozen=True, kw_only=True)
class InstalledCourse:
    """A course that a wheel brought: its entry point's name and its folder; without one, `fault` says why."""

    name: str
    root: Path | None
    fault: str = ""

    def folder(self) -> Path:
        """The course's folder. Raises CourseDamaged."""
        if self.root is None:
            raise CourseDamaged(
                f"The installed course {self.name} can't be used: {self.fault}.",
                "Install its wheel again, or uninstall it.",
            )
        return self.root


def is_course(folder: Path) -> bool:
    """Whether a folder is the top of a course."""
    return (folder / "checkpoints" / "course.toml").is_file()


def installed_courses() -> Iterator[InstalledCourse]:
    """Each course that a wheel brought (entry point group `course.courses`), usable or not."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if not _is_editable(point):
            yield _locate(point.name, point.value)


def _is_editable(point: importlib.metadata.EntryPoint) -> bool:
    """Whether a checkout stands for the wheel: the course is found there, and installed nowhere."""
    dist = point.dist
    text = dist.read_text("direct_url.json") if dist is not None else None
    return text is not None and '"editable": true' in text


def _locate(name: str, module: str) -> InstalledCourse:
    try:
        spec = importlib.util.find_spec(module)
    except Exception as error:  # noqa: BLE001 - a module above the course's own may fail in any way
        said = " ".join(str(error).split())
        return InstalledCourse(name=name, root=None, fault=f"{type(error).__name__}: {said}")
    if spec is None:
        return InstalledCourse(name=name, root=None, fault=f"there is no module {module}")
    for place in spec.submodule_search_locations or []:
        if is_course(Path(place)):
            return InstalledCourse(name=name, root=Path(os.path.realpath(place)))
    return InstalledCourse(name=name, root=None, fault=f"{module} holds no checkpoints/course.toml")


def named_course(name: str) -> Path | None:
    """The folder of the installed course of this name, None for no such course. Raises CourseDamaged."""
    return next((one.folder() for one in installed_courses() if one.name == name), None)
