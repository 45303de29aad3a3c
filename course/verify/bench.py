"""Where claims get what they judge: real practices, exported checkpoints and stages, each made once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from course.catalog import Chapter, Course
from course.history import History, build_history, export_commit
from course.placement import Destination
from course.practice import Start, make_practice
from course.verify.claim import ClaimFalse


class Workbench:
    """A course's directories for one run of the gate, under a temporary folder; safe from several threads."""

    def __init__(self, course: Course, history: History, folder: Path) -> None:
        self.course = course
        self.history = history
        self._folder = folder
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def practice(self, chapter: Chapter, language: str) -> Path:
        """A practice of the chapter, made as a learner makes it."""
        return self.once(
            f"practice-{chapter.id}-{language}", lambda path: self._practise(chapter, language, path)
        )

    def _practise(self, chapter: Chapter, language: str, path: Path) -> None:
        destination = Destination(folder=path, given=str(path), in_place=False, outer=None)
        start = Start(course=self.course, history=self.history, chapter=chapter, language=language)
        make_practice(start, destination)

    def target(self, chapter: Chapter) -> Path:
        """The runnable tree where the chapter ends."""
        commit = self.history.checkpoints[chapter.id]
        return self.once(f"target-{chapter.id}", lambda path: export_commit(self.history, commit, path))

    def stage(self, lab_id: str) -> Path:
        """The runnable tree with a chapter's labs up to this one done."""
        commit = self.history.stages[lab_id]
        return self.once(f"stage-{lab_id}", lambda path: export_commit(self.history, commit, path))

    def built_twice(self) -> str:
        """Build the history anew, in a folder of its own, and compare every id."""
        again = build_history(self.course, self._folder / "again")
        for kind in ("checkpoints", "stages", "practices"):
            first, second = getattr(self.history, kind), getattr(again, kind)
            for key in first.keys() | second.keys():
                if first.get(key) != second.get(key):
                    raise ClaimFalse(
                        f"{kind} {key}: {first.get(key)} the first time, {second.get(key)} again"
                    )
        return f"{len(again.checkpoints) + len(again.stages) + len(again.practices)} commits"

    def once(self, name: str, make: Callable[[Path], None]) -> Path:
        """The directory of this name, made by the first who asks."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        path = self._folder / name
        with lock:
            if not path.exists():
                make(path)
        return path
