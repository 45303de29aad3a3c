"""What the doctor looks at: where the user is, the practice and the course, as far as they can be read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course.catalog import Chapter, Course, find_course
from course.errors import CourseError
from course.practice import MARK, Practice, find_practice


@dataclass(frozen=True)
class Scene:
    """The place that is examined; nothing here raises."""

    start: Path
    explicit_course: Path | None

    @cached_property
    def root(self) -> Path | None:
        """The top of the practice that the user is in, even where its mark is damaged or gone."""
        here = self.start.resolve()
        for folder in (here, *here.parents):
            if (folder / MARK).exists() or (folder / MARK.parent / "source.toml").is_file():
                return folder
        return None

    @cached_property
    def practice(self) -> Practice | None:
        try:
            return find_practice(self.start)
        except CourseError:
            return None

    @cached_property
    def course(self) -> Course | None:
        try:
            return self.find_course()
        except CourseError:
            return None

    def find_course(self) -> Course:
        """The course that is meant here. Raises CourseError."""
        recorded = self.practice.source if self.practice is not None else None
        wanted = self.practice.course if self.practice is not None else ""
        return find_course(self.start, self.explicit_course, recorded, wanted)

    @cached_property
    def chapter(self) -> Chapter | None:
        """The practice's chapter, where course and practice belong together."""
        practice, course = self.practice, self.course
        if practice is None or course is None or practice.course != course.manifest.id:
            return None
        return course.by_id.get(practice.chapter)

    @property
    def package(self) -> str:
        """The name of the package under study, empty where it is not known."""
        return self.course.manifest.package if self.course is not None else ""

    @property
    def source(self) -> Path | None:
        """Where the practice keeps the package."""
        return self.root / "src" if self.root is not None else None
