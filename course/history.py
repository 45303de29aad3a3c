"""The teaching history: a git repository of every checkpoint, stage and practice start.

Decision: one `git fast-import` stream with fixed authors and dates, so that the same contents give the same
commit ids everywhere; cached by a hash of the contents, built beside and renamed, so that builders may race.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from course.catalog import Chapter, Course
from course.errors import CourseError, EnvironmentFault
from course.git import Git
from course.leftovers import partial_name, sweep_partials
from course.manifest import FORMAT, ManifestError
from course.projects import render_project
from course.stages import stage_tree
from course.trees import Tree, practice_tree, read_template, read_tree, target_tree

_BUILD_FORMAT = 1
_AUTHOR = "Course <course@course.invalid>"
_EPOCH = 1_767_225_600
_DAY = 86_400
_IDS = "ids.json"


class PinError(CourseError):
    """The commit ids that the contents give are not those that history.toml pins."""


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
    """Where histories are kept: the user's cache directory, or COURSE_CACHE_DIR."""
    chosen = os.environ.get("COURSE_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("course-lab-kit", appauthor=False))


def open_history(course: Course) -> History:
    """The course's history, from the cache or built now; an installed course's must equal its pins.

    Raises CourseError where contents, template, git or disk don't allow it, PinError on a mismatch.
    """
    folder = cache_folder() / "history" / content_hash(course)
    history = _load(folder)
    if history is None:
        history = build_history(course, folder)
    if course.installed:
        check_pins(course, history)
    return history


def content_hash(course: Course) -> str:
    """A hash of everything that the commit ids follow from."""
    digest = hashlib.sha256(f"{_BUILD_FORMAT}\0".encode())
    for path, data in _sources(course):
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
    for path, data in read_template(_template(course)).items():
        yield f"_project/{path}", data


def _template(course: Course) -> Path:
    return course.root / "starters" / "_project"


def _load(folder: Path) -> History | None:
    try:
        ids = json.loads((folder / _IDS).read_bytes())
        return History(folder / "repo.git", ids["checkpoints"], ids["stages"], ids["practices"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def build_history(course: Course, folder: Path) -> History:
    """Build beside `folder`, then rename; where another builder was faster, its result is the same."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep_partials(folder.parent, "history")
        work = Path(tempfile.mkdtemp(prefix=partial_name("history"), dir=folder.parent))
    except OSError as error:
        raise EnvironmentFault(
            f"The cache folder {folder.parent} can't be written: {error.strerror}.",
            "Name another by the environment variable COURSE_CACHE_DIR.",
        ) from error
    try:
        _import(course, work)
        if folder.exists() and _load(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            work.rename(folder)
        except OSError as error:
            if _load(folder) is None:
                raise EnvironmentFault(f"{folder} can't be made: {error.strerror}.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    history = _load(folder)
    if history is None:
        raise EnvironmentFault(
            f"{folder} can't be read back.", "Remove this folder, then run the command again."
        )
    return history


def _import(course: Course, work: Path) -> None:
    """Write the history of a course into `work`: repo.git, and ids.json last."""
    repository = work / "repo.git"
    repository.mkdir()
    git = Git(repository)
    git.run("init", "--quiet", "--bare", "--initial-branch=main", ".")
    stream = _Stream()
    marks = _write_commits(course, stream)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(stream.data))
        file.seek(0)
        git.run("fast-import", "--quiet", "--done", "--export-marks=marks", stdin=file)
    commits = dict(line.split() for line in (repository / "marks").read_text("ascii").splitlines())
    ids = {kind: {key: commits[f":{mark}"] for key, mark in of.items()} for kind, of in marks.items()}
    (work / _IDS).write_text(json.dumps(ids), "utf-8")


def _write_commits(course: Course, stream: _Stream) -> dict[str, dict[str, int]]:
    marks: dict[str, dict[str, int]] = {"checkpoints": {}, "stages": {}, "practices": {}}
    project = render_project(read_template(_template(course)), project_answers(course, None, ""))
    parent: int | None = None
    for chapter in course.chapters:
        if chapter.is_practice:
            for language in course.manifest.languages:
                tree = practice_tree(course, chapter) | practice_project(course, chapter, language)
                ref = practice_ref(chapter, language)
                mark = stream.commit(ref, parent, f"Chapter {chapter.id} starter", tree)
                marks["practices"][practice_key(chapter, language)] = mark
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


def practice_project(course: Course, chapter: Chapter, language: str) -> Tree:
    """The project files of a chapter's practice in one language."""
    return render_project(read_template(_template(course)), project_answers(course, chapter, language))


def project_answers(course: Course, chapter: Chapter | None, language: str) -> dict[str, Any]:
    """What the Copier template of the project files is told.

    Without a chapter the files are those of a checkpoint. Chapters and labs are those whose tests the tree
    holds, so that its pyproject registers each marker.
    """
    upto = course.until(chapter) if chapter is not None else course.chapters
    shown = language or course.manifest.languages[0]
    tables = [_chapter_answers(one, shown) for one in upto if one.is_practice]
    return {
        "format": FORMAT,
        "course_id": course.manifest.id,
        "course_title": _in(course.manifest.title, shown),
        "package": course.manifest.package,
        "language": shown,
        "chapters": tables,
        "practice": tables[-1] if chapter is not None else None,
        "parent": (chapter.manifest.parent or "") if chapter is not None else "",
    }


def _chapter_answers(chapter: Chapter, language: str) -> dict[str, Any]:
    manifest = chapter.manifest
    return {
        "id": chapter.id,
        "marker": chapter.marker,
        "extra": chapter.extra_marker,
        "tests": chapter.test_count,
        "title": _in(manifest.title, language),
        "summary": _in(manifest.summary, language),
        "first_step": _in(manifest.first_step or {}, language),
        "teaching_files": list(manifest.teaching_files),
        "focus_test": manifest.focus_test,
        "labs": [
            {
                "id": lab.id,
                "marker": lab.marker,
                "tests": lab.tests,
                "title": _in(lab.title, language),
                "goal": _in(lab.goal, language),
                "first_red": lab.first_red,
            }
            for lab in manifest.lab
        ],
    }


def _in(text: dict[str, str], language: str) -> str:
    return text.get(language) or next(iter(text.values()), "")


class _Stream:
    """A git fast-import stream in memory; equal blobs are written once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._marks = 0
        self._blobs: dict[bytes, int] = {}
        self._dates: dict[int, int] = {}

    def commit(self, ref: str, parent: int | None, message: str, tree: Tree) -> int:
        """Add a commit whose whole tree is `tree`; give its mark."""
        blobs = {path: self._blob(data) for path, data in sorted(tree.items())}
        self._marks += 1
        mark = self._marks
        text = message.encode("utf-8")
        self._dates[mark] = self._dates[parent] + _DAY if parent is not None else _EPOCH
        when = f"{self._dates[mark]} +0000"
        lines = [f"commit {ref}", f"mark :{mark}", f"author {_AUTHOR} {when}", f"committer {_AUTHOR} {when}"]
        self.data += ("\n".join(lines) + f"\ndata {len(text)}\n").encode() + text + b"\n"
        if parent is not None:
            self.data += f"from :{parent}\n".encode()
        self.data += b"deleteall\n"
        for path, blob in blobs.items():
            self.data += f"M 100644 :{blob} {_quoted(path)}\n".encode()
        self.data += b"\n"
        return mark

    def ref(self, ref: str, mark: int) -> None:
        self.data += f"reset {ref}\nfrom :{mark}\n\n".encode()

    def _blob(self, data: bytes) -> int:
        if data not in self._blobs:
            self._marks += 1
            self._blobs[data] = self._marks
            self.data += f"blob\nmark :{self._marks}\ndata {len(data)}\n".encode() + data + b"\n"
        return self._blobs[data]


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def export_commit(history: History, commit: str, folder: Path) -> None:
    """Write a commit's tree into a new folder, without any repository. Raises CourseError."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="course-index-") as index:
        git, env = Git(history.repository), {"GIT_INDEX_FILE": str(Path(index, "index"))}
        git.run("read-tree", commit, env=env)
        git.run(f"--work-tree={folder}", "checkout-index", "--all", env=env)


def read_pins(course: Course) -> dict[str, str] | None:
    """The pinned commit id of each checkpoint, None without a history.toml. Raises ManifestError."""
    import tomllib

    name = "checkpoints/history.toml"
    try:
        data = tomllib.loads((course.root / name).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ManifestError(name, "", f"expected TOML as `course pin` writes it: {error}") from error
    pins = data.get("checkpoints")
    if data.get("format") != FORMAT or not isinstance(pins, dict):
        raise ManifestError(name, "checkpoints", "expected a table of commit ids as `course pin` writes it")
    return {str(key): str(value) for key, value in pins.items()}


def write_pins(course: Course, history: History) -> Path:
    """Write history.toml anew, whole or not at all; give its path."""
    path = course.root / "checkpoints" / "history.toml"
    lines = [f"format = {FORMAT}", "", "[checkpoints]"]
    lines += [f'{chapter} = "{commit}"' for chapter, commit in history.checkpoints.items()]
    fresh = path.with_name(f".history.toml.{os.getpid()}")
    try:
        fresh.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise EnvironmentFault(f"{path} can't be written: {error.strerror}.") from error
    return path


def pin_mismatches(course: Course, history: History) -> list[str]:
    """The chapters whose commit id is not the pinned one, or that are pinned without being there."""
    pins = read_pins(course) or {}
    ids = history.checkpoints
    return sorted(key for key in pins.keys() | ids.keys() if pins.get(key) != ids.get(key))


def check_pins(course: Course, history: History) -> None:
    """Hold an installed course to its pins. Raises PinError."""
    wrong = pin_mismatches(course, history)
    if wrong:
        raise PinError(
            f"The installed course {course.manifest.id} is not what was pinned: checkpoints "
            f"{', '.join(wrong)} differ.",
            f"Its files under {course.root} were changed, or the wheel is damaged: install it again.",
        )


def parent_commit(course: Course, history: History, chapter: Chapter) -> str | None:
    """The commit id where a chapter starts, None for the first."""
    parent = course.parent(chapter)
    return history.checkpoints[parent.id] if parent is not None else None
