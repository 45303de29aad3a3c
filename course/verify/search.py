"""Searching files of any kind for a course's answers: sources, texts, bytecode, archives, repositories."""

from __future__ import annotations

import hashlib
import io
import marshal
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from types import CodeType

from course.catalog import Chapter, Course
from course.git import Git
from course.trees import Tree, parent_tree, solution_tree, starter_tree
from course.verify.answers import Answers
from course.verify.secrecy import find_chapter_answers

_HEADER = 16
_TINY = 40
_FOLDER = re.compile(r"(?:^|/)(?:labs|starters|solutions)/(\d+)/")
_MEMBERS = (".whl", ".zip", ".egg", ".pyz")


class Search:
    """The answers of some chapters, looked for in whatever is given; the same bytes are read once.

    In a chapter's own folders each of its answer lines counts, elsewhere whole bodies and more than one line.
    """

    def __init__(self, course: Course, hidden: Sequence[Chapter]) -> None:
        self._own = {chapter.id: find_chapter_answers(course, chapter) for chapter in hidden}
        self._all = Answers(
            lines=frozenset().union(*(one.lines for one in self._own.values())),
            bodies={body: name for one in self._own.values() for body, name in one.bodies.items()},
        )
        self._bytecode = frozenset(_new_bytecode(course, hidden))
        self._seen: dict[tuple[str, str, bytes], str] = {}

    def in_folder(self, folder: Path) -> Iterator[str]:
        """A sentence for each file under a folder that gives an answer away, git repositories included."""
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_dir() and (path / "objects").is_dir() and (path / "HEAD").is_file():
                yield from self.in_files(self._objects(path, name))
            elif path.is_file():
                yield from self.in_files([(name, path.read_bytes())])

    def in_archive(self, name: str, data: bytes) -> Iterator[str]:
        """The same for each member of a zip archive, a wheel say."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = ((f"{name}/{one}", archive.read(one)) for one in archive.namelist())
            yield from self.in_files(members)

    def in_files(self, files: Iterable[tuple[str, bytes]]) -> Iterator[str]:
        """The same for files given by name and bytes."""
        for name, data in files:
            if name.endswith(_MEMBERS) and zipfile.is_zipfile(io.BytesIO(data)):
                yield from self.in_archive(name, data)
                continue
            kind, chapter = _kind(name), _chapter(name)
            key = (kind, chapter, hashlib.sha256(data).digest())
            if key not in self._seen:
                self._seen[key] = self._read(kind, chapter, data)
            if found := self._seen[key]:
                yield f"{name} {found}"

    def _read(self, kind: str, chapter: str, data: bytes) -> str:
        if kind == "bytecode":
            return self._in_bytecode(data)
        text = data.decode("utf-8", "replace")
        found = _given_away(self._own[chapter], kind, text) if chapter in self._own else ""
        return found or _given_away(self._all, f"foreign {kind}", text)

    def _in_bytecode(self, data: bytes) -> str:
        try:
            code = marshal.loads(data[_HEADER:])
        except (ValueError, EOFError, TypeError):
            return ""
        solved = sorted(one.co_name for one in _functions(code) if _digest(one) in self._bytecode)
        return f"holds the compiled body of {solved[0]}" if solved else ""

    def _objects(self, repository: Path, name: str) -> Iterator[tuple[str, bytes]]:
        """Every file in a repository, whether a commit reaches it or not."""
        git = Git(repository)
        reached = git.lines("rev-list", "--objects", "--all", "--reflog")
        paths = dict(line.split(" ", 1) for line in reached if " " in line)
        for line in git.lines("cat-file", "--batch-all-objects", "--batch-check"):
            blob, kind, _ = line.split()
            if kind == "blob":
                path = paths.get(blob) or "unreached.py"
                yield f"{name}/{blob[:12]}/{path}", git.run("cat-file", "blob", blob).encode()


def _kind(name: str) -> str:
    """How a file has to be read."""
    path = PurePosixPath(name)
    if path.suffix in (".pyc", ".pyo"):
        return "bytecode"
    if path.suffix == ".py":
        return "test" if path.name.startswith("test_") else "code"
    if path.suffix == ".patch":
        return "edit"
    return "handout" if path.name.startswith("handout.") else "text"


def _chapter(name: str) -> str:
    """The id of the chapter in whose folders a file lies, empty for none."""
    found = _FOLDER.search(name)
    return found[1] if found is not None else ""


def _given_away(answers: Answers, kind: str, text: str) -> str:
    readers = {
        "code": answers.in_code,
        "text": answers.in_prose,
        "test": answers.in_test,
        "edit": answers.in_prose,
        "foreign edit": answers.in_foreign_edit,
        "foreign code": answers.in_foreign_code,
        "foreign test": answers.in_test,
    }
    try:
        return readers.get(kind, answers.in_handout)(text)
    except (SyntaxError, ValueError):
        return answers.in_handout(text)


def _new_bytecode(course: Course, hidden: Sequence[Chapter]) -> set[str]:
    """Of the functions that the chapters' solutions compile to, those that are given nowhere."""
    found: set[str] = set()
    known = _bytecode(parent_tree(course, hidden[0])) if hidden else set()
    for chapter in hidden:
        found |= _bytecode(solution_tree(chapter))
        known |= _bytecode(starter_tree(chapter))
    return found - known


def _bytecode(tree: Tree) -> set[str]:
    codes = [compile(data, path, "exec", dont_inherit=True) for path, data in tree.items() if _is_code(path)]
    return {_digest(one) for code in codes for one in _functions(code) if len(one.co_code) >= _TINY}


def _is_code(path: str) -> bool:
    return path.startswith("src/") and path.endswith(".py")


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions with a name of their own; a comprehension or a lambda may be anybody's."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if not one.co_name.startswith("<"):
                yield one
            yield from _functions(one)


def _digest(code: CodeType) -> str:
    """A function's code, wherever and in which file it stands."""
    constants = [_spelling(one) for one in code.co_consts if not isinstance(one, CodeType)]
    text = repr((code.co_name, code.co_code, code.co_names, code.co_varnames, constants))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _spelling(constant: object) -> str:
    """A constant in words that are the same in every process, also of a set of strings."""
    return repr(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)
