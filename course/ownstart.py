"""A practice that starts from the learner's own code alone: an edition has no reference to start it from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from course.begin import Start
from course.carry import Carried, prove
from course.catalog import Chapter, Course
from course.git import Git
from course.leftovers import temporary_folder
from course.practice import START_REF
from course.projects import project_files
from course.trees import Tree, lab_tests, parent_tree, starter_tree, write_tree


class OwnStart:
    """The history of one practice: the last given checkpoint, the learner's chapters, the starter."""

    def __init__(self, course: Course, carried: Carried, chapter: Chapter, language: str) -> None:
        self._course = course
        self._carried = carried
        self._chapter = chapter
        self._language = language
        self._own = [step for step in course.until(carried.chapter) if not step.given]

    def prove(self) -> None:
        """Run every test up to the chapter before on the learner's code. Raises CarryError."""
        with temporary_folder("own") as folder:
            tree = folder / "tree"
            write_tree(self._tree(self._own) | project_files(self._course), tree)
            prove(self._course, self._carried, tree)

    @property
    def ref(self) -> str:
        """The last checkpoint that is given, empty where there is none."""
        last = self._course.parent(self._own[0])
        return f"refs/tags/checkpoint-{last.id}" if last is not None else ""

    def finish(self) -> Callable[[Path], None]:
        """What adds the learner's chapters and the starter to a new practice that holds `ref`."""

        def add(folder: Path) -> None:
            git, project = Git(folder), project_files(self._course)
            for index, step in enumerate(self._own):
                tree = self._tree(self._own[: index + 1]) | project
                _commit(git, tree, f"Chapter {step.id}, your own")
            start = self._tree(self._own) | lab_tests(self._chapter) | starter_tree(self._chapter)
            start |= project_files(self._course, self._chapter, self._language)
            _commit(git, start, f"Chapter {self._chapter.id} starter")
            git.run("update-ref", START_REF, "HEAD")

        return add

    def _tree(self, steps: list[Chapter]) -> Tree:
        """The given tree with these chapters' tests and the learner's files for them."""
        tree = parent_tree(self._course, self._own[0])
        for step in steps:
            names = step.manifest.teaching_files
            tree |= lab_tests(step) | {name: self._carried.files[name] for name in names}
        return tree


def own_start(start: Start, carried: Carried) -> Start:
    """The start of a practice on the learner's own code, proven by a fresh run. Raises CarryError."""
    own = OwnStart(start.course, carried, start.chapter, start.language)
    own.prove()
    return replace(start, ref=own.ref, finish=own.finish())


def _commit(git: Git, tree: Tree, subject: str) -> None:
    write_tree(tree, git.folder)
    git.run("add", "--force", "--", *tree)
    git.run("commit", "--quiet", "--no-verify", "--allow-empty", "-m", subject)
