"""A learner's own teaching files, carried into the next chapter's practice once they are proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from course.catalog import Chapter, Course
from course.errors import CourseError, InputError
from course.git import Git, GitError
from course.history import History, export_commit
from course.judge import TestRun
from course.labs import run_tests, teaching_modules
from course.leftovers import temporary_folder
from course.outcome import Status
from course.practice import START_REF, Practice
from course.trees import starter_tree, write_tree


class CarryError(CourseError):
    """The learner's own files can't be carried on: they are not green."""

    exit_status = 1


@dataclass(frozen=True, kw_only=True)
class Carried:
    """Teaching files of the learner: path in the tree and bytes."""

    files: dict[str, bytes]
    chapter: Chapter


def carried_files(course: Course, practice: Practice, chapter: Chapter) -> Carried:
    """The learner's files that stand for the chapter before `chapter`, not proven yet.

    Raises InputError where the practice is not of the parent, CarryError where a file is missing.
    """
    parent = course.parent(chapter)
    if parent is None or practice.chapter != parent.id or practice.course != course.manifest.id:
        wanted = f"chapter {parent.id}" if parent is not None else "none"
        raise InputError(
            f"{practice.root} is of chapter {practice.chapter}; chapter {chapter.id} follows {wanted}.",
            f"Leave --from out to start chapter {chapter.id} from the reference.",
        )
    names = [name for one in course.until(parent) if one.is_practice for name in one.manifest.teaching_files]
    return Carried(files={name: _own(practice, name) for name in names}, chapter=parent)


def prove_on_reference(course: Course, history: History, carried: Carried) -> None:
    """Prove the files by a fresh run on the parent's tree, so that changed tests prove nothing.

    Raises CarryError where a test is red.
    """
    with temporary_folder("carry") as folder:
        tree = folder / "tree"
        export_commit(history, history.checkpoints[carried.chapter.id], tree)
        write_tree(carried.files, tree)
        prove(course, carried, tree)


def prove(course: Course, carried: Carried, tree: Path) -> None:
    """Run every test of the tree that the files lie in. Raises CarryError where one is red."""
    run = run_tests(
        TestRun(
            tree=tree,
            package=course.manifest.package,
            modules=teaching_modules(carried.chapter),
            files=["tests"],
            deadline=300,
        )
    )
    if run.status is not Status.PASSED:
        reds = [test for test in run.tests if test.status is not Status.PASSED]
        red = min(reds, key=lambda test: carried.chapter.extra_marker in test.markers, default=None)
        what = run.cause or (f"{red.name} is red" if red is not None else "it is not green")
        raise CarryError(
            f"Your chapter {carried.chapter.id} can't be carried on: {what}.",
            "Mend it first, or leave --from out to start from the reference.",
        )


def _own(practice: Practice, name: str) -> bytes:
    try:
        return (practice.root / name).read_bytes()
    except OSError as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else f"can't be read: {error.strerror}"
        raise CarryError(
            f"{name} {what}, in {practice.root}.",
            "Mend it first, or leave --from out to start from the reference.",
        ) from error


def carry_into(carried: Carried, chapter: Chapter, history: History) -> Callable[[Path], None]:
    """What puts the carried files into a new practice, as a commit on top of its starter."""

    def finish(folder: Path) -> None:
        git = Git(folder)
        for name, data in carried.files.items():
            if name in starter_tree(chapter):
                data = _merged(history, carried, name, folder)
            (folder / name).write_bytes(data)
        git.run("add", "--", *carried.files)
        if git.lines("diff", "--cached", "--name-only"):
            git.run(
                "commit",
                "--quiet",
                "--no-verify",
                "-m",
                f"Chapter {carried.chapter.id}, your own, carried on",
            )
            git.run("update-ref", START_REF, "HEAD")

    return finish


def _merged(history: History, carried: Carried, name: str, folder: Path) -> bytes:
    """A file that grows in this chapter: the learner's form with the starter's additions.

    Raises InputError where both changed the same lines.
    """
    with temporary_folder("merge") as place:
        paths = [place / which for which in ("yours", "parent", "starter")]
        base = Git(history.repository).run("show", f"{history.checkpoints[carried.chapter.id]}:{name}")
        texts = [carried.files[name], base.encode() + b"\n", (folder / name).read_bytes()]
        for path, data in zip(paths, texts, strict=True):
            path.write_bytes(data)
        try:
            Git(folder).run("merge-file", *(str(path) for path in paths))
        except GitError as error:
            raise InputError(
                f"{name} grows in this chapter, and your form can't be joined with the starter's additions.",
                "Leave --from out to start from the reference.",
            ) from error
        return paths[0].read_bytes()
