"""Where claims get what they judge: real practices, exported checkpoints, runs of tests, each made once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from course.begin import Start, make_practice
from course.catalog import Chapter, Course
from course.errors import CourseError
from course.history import History, export_commit, open_history
from course.judge import TestRun
from course.labs import run_tests, teaching_modules
from course.outcome import RunOutcome, Status
from course.placement import Destination
from course.projects import project_files
from course.trees import lab_tests, practice_tree, solution_tree, write_tree
from course.verify.claim import ClaimBroken

DEADLINE = 300.0
T = TypeVar("T")


class Workbench:
    """A course's directories and runs for one pass of the gate, in a folder; safe from several threads."""

    def __init__(self, course: Course, folder: Path) -> None:
        self.course = course
        self.folder = folder
        self._kept: dict[str, Any] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    @property
    def package(self) -> str:
        return self.course.manifest.package

    @property
    def language(self) -> str:
        """The language where one is enough."""
        return self.course.manifest.languages[0]

    @property
    def history(self) -> History:
        """The teaching history, opened by the first who asks. Raises CourseError."""
        return self.shared("history", lambda: open_history(self.course))

    def practice(self, chapter: Chapter, language: str, name: str = "fresh") -> Path:
        """A practice of the chapter, made as a learner makes it; one for each name."""

        def make(path: Path) -> None:
            destination = Destination(folder=path, given=str(path), in_place=False, outer=None)
            start = Start(course=self.course, history=self.history, chapter=chapter, language=language)
            make_practice(start, destination)

        return self.once(f"practice-{chapter.id}-{language}-{name}", make)

    def starter(self, chapter: Chapter, language: str) -> Path:
        """What a practice begins with, straight from the course's folders, without git."""

        def make(path: Path) -> None:
            files = project_files(self.course, chapter, language)
            write_tree(practice_tree(self.course, chapter) | files, path)

        return self.once(f"starter-{chapter.id}-{language}", make)

    def solved(self, chapter: Chapter, name: str) -> Path:
        """A practice of the chapter whose labs are done; one for each name."""

        def make(path: Path) -> None:
            self.practice(chapter, self.language, name).rename(path)
            write_tree(solution_tree(chapter), path)

        return self.once(f"solved-{chapter.id}-{name}", make)

    def target(self, chapter: Chapter) -> Path:
        """The runnable tree where the chapter ends."""
        return self._export(f"target-{chapter.id}", lambda: self.history.checkpoints[chapter.id])

    def stage(self, lab_id: str) -> Path:
        """The runnable tree with a chapter's labs up to this one done."""
        return self._export(f"stage-{lab_id}", lambda: self.history.stages[lab_id])

    def _export(self, name: str, commit: Callable[[], str]) -> Path:
        return self.once(name, lambda path: export_commit(self.history, commit(), path))

    def run(self, chapter: Chapter, tree: Path, files: list[str], **changes: Any) -> RunOutcome:
        """Run test files in a tree. Raises ClaimBroken where the run can't be trusted."""
        return sound(
            run_tests(
                TestRun(
                    tree=tree,
                    package=self.package,
                    modules=teaching_modules(chapter),
                    files=files,
                    deadline=DEADLINE,
                    **changes,
                )
            )
        )

    def reference_run(self, chapter: Chapter) -> RunOutcome:
        """The chapter's own tests, the extra ones included, on the reference."""
        return self.shared(
            f"reference {chapter.id}",
            lambda: self.run(chapter, self.target(chapter), list(lab_tests(chapter))),
        )

    def once(self, name: str, make: Callable[[Path], None]) -> Path:
        """The directory of this name, made by the first who asks; half of one is removed."""

        def build() -> Path:
            path = self.folder / name
            try:
                make(path)
            except BaseException:
                shutil.rmtree(path, ignore_errors=True)
                raise
            return path

        return self.shared(name, build)

    def shared(self, key: str, make: Callable[[], T]) -> T:
        """What the first who asks makes; where that failed, everybody is told the same CourseError."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._kept:
                try:
                    self._kept[key] = make()
                except CourseError as error:
                    self._kept[key] = error
        kept = self._kept[key]
        if isinstance(kept, CourseError):
            raise kept
        made: T = kept
        return made


def sound(run: RunOutcome) -> RunOutcome:
    """A run that can be trusted, red or green. Raises ClaimBroken."""
    if run.status is Status.BROKEN:
        raise ClaimBroken(run.cause)
    return run
