"""What the reference changed in a chapter's teaching files, and what it has different from the learner's."""

from __future__ import annotations

from pathlib import Path

from course.catalog import Chapter, Course
from course.git import Git
from course.history import History, parent_commit
from course.leftovers import temporary_folder

_NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name of the empty tree
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=3")


def reference_diff(course: Course, history: History, chapter: Chapter) -> str:
    """The chapter's teaching files from its parent to its target."""
    before = parent_commit(course, history, chapter) or _NOTHING
    after = history.checkpoints[chapter.id]
    return Git(history.repository).run("diff", *_PLAIN, before, after, "--", *chapter.manifest.teaching_files)


def own_diff(history: History, chapter: Chapter, practice: Path) -> str:
    """From the learner's teaching files, under `mine/`, to the target's, under `reference/`."""
    git, target = Git(history.repository), history.checkpoints[chapter.id]
    with temporary_folder("mine") as folder:
        objects = folder / "objects"
        objects.mkdir()
        env = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(history.repository / "objects"),
            "GIT_INDEX_FILE": str(folder / "index"),
        }
        for name in chapter.manifest.teaching_files:
            file = practice / name
            if file.is_file():
                blob = git.run("hash-object", "-w", "--no-filters", "--", str(file), env=env)
                git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=env)
        names = ["--src-prefix=mine/", "--dst-prefix=reference/", git.run("write-tree", env=env), target]
        return git.run("diff", *_PLAIN, *names, "--", *chapter.manifest.teaching_files, env=env)
