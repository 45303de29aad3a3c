"""The starter's form of teaching files: as the practice was made, else as the course has it now."""

from __future__ import annotations

from collections.abc import Sequence

from course.begin import start_commit
from course.catalog import Chapter, Course
from course.git import GitError
from course.history import export_commit, open_history
from course.leftovers import temporary_folder
from course.practice import START_REF, Practice
from course.repository import Repository

Files = dict[str, bytes | None]


def starter_files(repository: Repository, names: Sequence[str]) -> Files | None:
    """These files in the practice's starter commit; None where that commit is gone."""
    try:
        return repository.files(START_REF, names)
    except GitError:
        return None


def course_starter_files(course: Course, chapter: Chapter, practice: Practice, names: Sequence[str]) -> Files:
    """These files in the starter that the course would make now. Raises CourseError."""
    history = open_history(course)
    languages = course.manifest.languages
    language = practice.language if practice.language in languages else languages[0]
    commit = start_commit(history, chapter, language)
    with temporary_folder("starter") as folder:
        tree = folder / "tree"
        export_commit(history, commit, tree)
        return {name: (tree / name).read_bytes() if (tree / name).is_file() else None for name in names}
