"""The file trees that a course's folders stand for: a chapter's target and its practice.

Decision: contents are read by an allow-list of names, because bytecode, editor files and installer leftovers
must never change a commit id; line ends become LF for the same reason.
"""

from __future__ import annotations

import re
from pathlib import Path

from course.catalog import Chapter, Course
from course.errors import CourseError

Tree = dict[str, bytes]

_SUFFIXES = frozenset(
    (
        ".py",
        ".pyi",
        ".typed",
        ".toml",
        ".cfg",
        ".ini",
        ".md",
        ".txt",
        ".json",
        ".jsonl",
        ".yaml",
        ".yml",
        ".csv",
    )
)
_NAME = re.compile(r"[A-Za-z0-9_\[\]{}][^/\\~#]*")


def read_tree(folder: Path) -> Tree:
    """Read the allowed files under a folder: path with forward slashes, bytes with LF line ends.

    A missing folder is an empty tree. Raises CourseError where a file can't be read.
    """
    tree: Tree = {}
    if not folder.is_dir():
        return tree
    try:
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if path.is_file() and _is_content(relative.parts):
                tree[relative.as_posix()] = path.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise CourseError(f"{error.filename} can't be read: {error.strerror}.") from error
    return tree


def _is_content(parts: tuple[str, ...]) -> bool:
    if any(
        part == "__pycache__" or part.endswith(".egg-info") or not _NAME.fullmatch(part) for part in parts
    ):
        return False
    return Path(parts[-1]).suffix in _SUFFIXES or parts[-1] == "py.typed"


def read_template(folder: Path) -> Tree:
    """Read a Copier template: what ends in `.jinja`, `copier.yml`, and plain files with an allowed suffix."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        relative = path.relative_to(folder)
        allowed = path.name.endswith(".jinja") or (path.suffix in _SUFFIXES and not path.name.startswith("."))
        leftover = path.name.startswith(("._", ".#", "#"))
        if path.is_file() and allowed and not leftover and not {"__pycache__", ".git"} & {*relative.parts}:
            tree[relative.as_posix()] = _read(path)
    return tree


def lab_tests(chapter: Chapter) -> Tree:
    """A chapter's test files under `tests/`."""
    return {f"tests/{path.name}": _read(path) for path in sorted(chapter.labs_dir.glob("test_*.py"))}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise CourseError(f"{path} can't be read: {error.strerror}.") from error


def solution_tree(chapter: Chapter) -> Tree:
    """The chapter's teaching files as the reference has them."""
    return {f"src/{path}": data for path, data in read_tree(chapter.solution_dir / "src").items()}


def starter_tree(chapter: Chapter) -> Tree:
    """The chapter's answer-free teaching files."""
    return {f"src/{path}": data for path, data in read_tree(chapter.starter_dir / "src").items()}


def base_tree(course: Course) -> Tree:
    """The tree before the first chapter's additions."""
    return read_tree(course.root / "checkpoints" / course.chapters[0].id)


def target_tree(course: Course, chapter: Chapter) -> Tree:
    """The teaching files and tests where a chapter ends, project files not included."""
    tree = base_tree(course)
    for step in course.until(chapter):
        tree |= lab_tests(step) | solution_tree(step)
    return tree


def parent_tree(course: Course, chapter: Chapter) -> Tree:
    """The tree where a chapter starts: its parent's target."""
    parent = course.parent(chapter)
    return target_tree(course, parent) if parent is not None else base_tree(course)


def practice_tree(course: Course, chapter: Chapter) -> Tree:
    """Parent's target, the chapter's tests, the chapter's starter; project files not included."""
    return parent_tree(course, chapter) | lab_tests(chapter) | starter_tree(chapter)


def write_tree(tree: Tree, folder: Path) -> None:
    """Write a tree's files under a folder, making what folders it needs."""
    for path, data in tree.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
