"""The claims that a chapter's trees build, and that practices are made the same every time."""

from __future__ import annotations

from pathlib import Path

from course.build import BuildFailed, build
from course.catalog import Chapter
from course.git import Git
from course.history import parent_commit
from course.verify.bench import Workbench
from course.verify.claim import ClaimFalse, counted


def target_builds(bench: Workbench, chapter: Chapter) -> str:
    """Every module of the tree where the chapter ends compiles and imports."""
    return _builds(bench.target(chapter), bench.package)


def starter_builds(bench: Workbench, chapter: Chapter, language: str) -> str:
    """Every module of the tree that a learner starts with compiles and imports."""
    return _builds(bench.starter(chapter, language), bench.package)


def _builds(tree: Path, package: str) -> str:
    try:
        return counted(build(tree, package), "module")
    except BuildFailed as failure:
        raise ClaimFalse(failure.message) from failure


def practice_is_made_twice(bench: Workbench, chapter: Chapter, language: str) -> str:
    """Two practices have the files that the course's folders say, and the same commits."""
    first, second = (bench.practice(chapter, language, name) for name in ("fresh", "again"))
    said = _files(bench.starter(chapter, language))
    for practice in (first, second):
        made = _files(practice)
        for name in sorted(said.keys() | made.keys()):
            if said.get(name) != made.get(name):
                raise ClaimFalse(f"{name} is not what starter and template make of it a second time")
    commits = Git(first).lines("rev-list", "HEAD")
    if commits != Git(second).lines("rev-list", "HEAD"):
        raise ClaimFalse("the two have different commits")
    parent = parent_commit(bench.course, bench.history, chapter)
    before = commits[1] if len(commits) > 1 else None
    if before != parent:
        raise ClaimFalse(f"the commit before the starter is {before}, not the checkpoint {parent}")
    return f"{counted(len(said), 'file')}, {counted(len(commits), 'commit')}"


def _files(folder: Path) -> dict[str, bytes]:
    """Every file that git keeps or could keep; the note of where the course lies is each practice's own."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    own = Path(".course", "source.toml")
    return {
        name.as_posix(): path.read_bytes()
        for name, path in files.items()
        if name.parts[0] != ".git" and name != own
    }
