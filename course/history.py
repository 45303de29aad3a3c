"""The teaching history: a git repository of every checkpoint, stage and practice start.

Decision: one `git fast-import` stream with fixed authors and dates, so that the same contents give the same
commit ids everywhere; cached by a hash of the contents, built beside and renamed, so that builders may race.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from course.catalog import Chapter, Course
from course.errors import EnvironmentFault
from course.fastimport import Stream
from course.git import Git
from course.leftovers import partial_folder, sweep_partials, temporary_folder
from course.pins import check_pins, read_pins
from course.projects import project_files
from course.stages import stage_tree
from course.trees import practice_tree, read_template, read_tree, target_tree

_IDS = "ids.json"
# What decides the commit ids beside the contents: what another engine built must not serve this one.
_ENGINE = ("fastimport.py", "history.py", "projects.py", "stages.py", "trees.py", "units.py")
_KIND = "history"
_TRIES = 3


@dataclass(frozen=True)
class History:
    """A built history: the bare repository, and the commit ids of checkpoints, stages and practice starts."""

    repository: Path
    checkpoints: dict[str, str]
    stages: dict[str, str]
    practices: dict[str, str]


def practice_key(chapter: Chapter, language: str) -> str:
    """The key of a practice start in `History.practices`, and the end of its ref."""
    return f"{chapter.id}/{language}"


def practice_ref(chapter: Chapter, language: str) -> str:
    """The ref in the cache that holds a practice start."""
    return f"refs/heads/practice/{practice_key(chapter, language)}"


def cache_folder() -> Path:
    """Where histories are kept: the user's cache directory, or COURSE_CACHE_DIR. Raises EnvironmentFault."""
    chosen = os.environ.get("COURSE_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        folder = Path(platformdirs.user_cache_dir("course-lab-kit", appauthor=False))
    except RuntimeError:
        # So says pathlib of a user without an entry in the system's table.
        folder = Path()
    if not folder.is_absolute():
        raise EnvironmentFault(
            "There is no home directory to keep the teaching history in.",
            "Name a folder by the environment variable COURSE_CACHE_DIR.",
        )
    return folder


def open_history(course: Course) -> History:
    """The course's history, from the cache or built now; an installed course's must equal its pins.

    Raises CourseError where contents, template, git or disk don't allow it, PinError on a mismatch.
    """
    folder = cache_folder() / "history" / content_hash(course)
    history = _load(folder)
    if history is None:
        history = build_history(course, folder)
    if course.installed:
        check_pins(course, history.checkpoints)
    return history


def content_hash(course: Course) -> str:
    """A hash of everything that the commit ids follow from."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    engine = ((f"course/{name}", (here / name).read_bytes()) for name in _ENGINE)
    for path, data in (*engine, *_sources(course)):
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:32]


def _sources(course: Course) -> Iterator[tuple[str, bytes]]:
    pinned = "checkpoints/history.toml"
    for name in ("checkpoints", "starters", "solutions"):
        for path, data in read_tree(course.root / name).items():
            if f"{name}/{path}" != pinned:
                yield f"{name}/{path}", data
    for chapter in course.chapters:
        for file in sorted([*chapter.labs_dir.glob("test_*.py"), chapter.labs_dir / "lab.toml"]):
            yield f"labs/{chapter.id}/{file.name}", file.read_bytes().replace(b"\r\n", b"\n")
    for path, data in read_template(course.root / "starters" / "_project").items():
        yield f"_project/{path}", data


def _load(folder: Path) -> History | None:
    """The history in a cache folder, None where there is none or a file of it is missing or cut off."""
    try:
        ids = json.loads((folder / _IDS).read_bytes())
        for name, size in ids["files"].items():
            if (folder / name).stat().st_size != size:
                return None
        return History(folder / "repo.git", ids["checkpoints"], ids["stages"], ids["practices"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def build_history(course: Course, folder: Path) -> History:
    """Build beside `folder`, then rename; where another builder was faster, its result is the same."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep_partials(folder.parent, _KIND)
        for _ in range(_TRIES):
            with partial_folder(folder.parent, _KIND) as work:
                entry = work / "entry"
                entry.mkdir()
                _import(course, entry)
                _put(entry, folder)
            history = _load(folder)
            if history is not None:
                return history
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else error.strerror
        raise EnvironmentFault(
            f"The cache folder {folder.parent} can't be written: {why}.",
            "Name another by the environment variable COURSE_CACHE_DIR.",
        ) from error
    raise EnvironmentFault(f"{folder} can't be read back.", "Remove this folder, then run the command again.")


def _put(entry: Path, folder: Path) -> None:
    """Rename a built history to its place, unless a whole one is there; a damaged one makes way."""
    if _load(folder) is None:
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            folder.unlink(missing_ok=True)
    try:
        entry.rename(folder)
    except OSError as error:
        if _load(folder) is None:
            raise EnvironmentFault(f"{folder} can't be made: {error.strerror}.") from error


def _import(course: Course, entry: Path) -> None:
    """Write the history of a course into `entry`: repo.git, and ids.json last."""
    repository = entry / "repo.git"
    repository.mkdir()
    git = Git(repository)
    git.run("init", "--quiet", "--bare", "--initial-branch=main", ".")
    stream = Stream()
    marks = _write_commits(course, stream)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(stream.data))
        file.seek(0)
        git.run("fast-import", "--quiet", "--done", "--export-marks=marks", stdin=file)
    commits = dict(line.split() for line in (repository / "marks").read_text("ascii").splitlines())
    ids = {kind: {key: commits[f":{mark}"] for key, mark in of.items()} for kind, of in marks.items()}
    sizes = {
        path.relative_to(entry).as_posix(): path.stat().st_size for path in entry.rglob("*") if path.is_file()
    }
    (entry / _IDS).write_text(json.dumps({**ids, "files": sizes}), "utf-8")


def _write_commits(course: Course, stream: Stream) -> dict[str, dict[str, int]]:
    marks: dict[str, dict[str, int]] = {"checkpoints": {}, "stages": {}, "practices": {}}
    project = project_files(course)
    parent: int | None = None
    for chapter in course.chapters:
        if chapter.is_practice and not _is_withheld(course, chapter):
            for language in course.manifest.languages:
                tree = practice_tree(course, chapter) | project_files(course, chapter, language)
                ref = practice_ref(chapter, language)
                mark = stream.commit(ref, parent, f"Chapter {chapter.id} starter", tree)
                marks["practices"][practice_key(chapter, language)] = mark
        if not chapter.given:
            # What follows has this chapter's target in its tree.
            break
        if chapter.is_practice:
            before = parent
            for lab in chapter.manifest.lab:
                tree = project | stage_tree(course, chapter, lab.id)
                before = stream.commit(f"refs/stages/{lab.id}", before, f"Lab {lab.id} done", tree)
                marks["stages"][lab.id] = before
        title = next(iter(chapter.manifest.title.values()))
        tree = project | target_tree(course, chapter)
        parent = stream.commit("refs/heads/main", parent, f"Chapter {chapter.id}: {title}", tree)
        stream.ref(f"refs/tags/checkpoint-{chapter.id}", parent)
        marks["checkpoints"][chapter.id] = parent
    stream.data += b"done\n"
    return marks


def _is_withheld(course: Course, chapter: Chapter) -> bool:
    return course.edition is not None and chapter.id in course.edition.withheld


def export_commit(history: History, commit: str, folder: Path) -> None:
    """Write a commit's tree into a new folder, without any repository. Raises CourseError."""
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder("index") as index:
        git, env = Git(history.repository), {"GIT_INDEX_FILE": str(index / "index")}
        git.run("read-tree", commit, env=env)
        git.run(f"--work-tree={folder}", "checkout-index", "--all", env=env)


def parent_commit(course: Course, history: History, chapter: Chapter) -> str | None:
    """The commit id where a chapter starts, None for the first."""
    parent = course.parent(chapter)
    return checkpoint_commit(course, history, parent) if parent is not None else None


def checkpoint_commit(course: Course, history: History, chapter: Chapter) -> str | None:
    """The commit id where a chapter ends: of one that a learner's edition leaves out, as it is pinned."""
    built = history.checkpoints.get(chapter.id)
    return built or (read_pins(course) or {}).get(chapter.id)
