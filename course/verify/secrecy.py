"""The claims that nothing a learner gets holds an answer: the starter, the practice, its git objects."""

from __future__ import annotations

from pathlib import Path

from course.catalog import Chapter
from course.git import Git
from course.trees import lab_tests, parent_tree, read_tree, solution_tree, starter_tree
from course.verify.answers import answer_bodies, answer_lines, leaked_bodies, leaked_lines, spelled_lines
from course.verify.bench import Workbench
from course.verify.claim import ClaimFalse


def chapter_answers(bench: Workbench, chapter: Chapter) -> tuple[frozenset[str], dict[str, str]]:
    """The answer lines and bodies of all the chapter's teaching files."""
    parent = parent_tree(bench.course, chapter)
    lines: frozenset[str] = frozenset()
    bodies: dict[str, str] = {}
    before = "\n".join(
        data.decode() for path, data in parent.items() if path.endswith(".py") and "src/" in path
    )
    for path, data in solution_tree(chapter).items():
        if path.endswith(".py"):
            old = parent.get(path, b"").decode()
            lines |= answer_lines(data.decode(), old)
            bodies |= answer_bodies(data.decode(), old)
    if not lines:
        raise ClaimFalse(
            f"chapter {chapter.id} has no answer at all: its solution adds nothing to the parent"
        )
    return lines - frozenset(before.splitlines()), bodies


def starter_hides(bench: Workbench, chapter: Chapter) -> str:
    """No starter file holds an answer line or a solved body."""
    lines, bodies = chapter_answers(bench, chapter)
    for path, data in starter_tree(chapter).items():
        if path.endswith(".py"):
            _demand_none(path, data.decode(), lines, bodies)
    return f"{len(lines)} answer lines, {len(bodies)} bodies looked for"


def _demand_none(path: str, text: str, lines: frozenset[str], bodies: dict[str, str]) -> None:
    found = leaked_lines(text, lines)
    if found:
        raise ClaimFalse(f"{path} holds an answer line: {found[0]}")
    solved = leaked_bodies(text, bodies)
    if solved:
        raise ClaimFalse(f"{path} holds the solved body of {solved[0]}")


def practice_hides(bench: Workbench, chapter: Chapter, language: str) -> str:
    """A practice's files and git objects hold no answer, and nothing beyond its own history."""
    root = bench.practice(chapter, language)
    lines, bodies = chapter_answers(bench, chapter)
    _demand_only_history(root)
    for bytecode in root.rglob("*.pyc"):
        raise ClaimFalse(f"{bytecode.relative_to(root)} is bytecode")
    secret = {_blob_id(data) for data in solution_tree(chapter).values()}
    allowed = {_blob_id(data) for data in parent_tree(bench.course, chapter).values()}
    for line in Git(root).lines("cat-file", "--batch-all-objects", "--batch-check"):
        name, kind, _ = line.split()
        if kind == "blob" and name in secret - allowed:
            raise ClaimFalse(f"git object {name} is a file of the reference")
    parent = parent_tree(bench.course, chapter)
    tests = lab_tests(chapter)
    count = 0
    for path, data in read_tree(root).items():
        if path in parent and parent[path] == data:
            continue
        count += 1
        text = data.decode("utf-8", "replace")
        if path.endswith(".py") and path not in tests:
            _demand_none(path, text, lines, bodies)
        elif path.endswith(".py"):
            _demand_none(path, text, frozenset(), bodies)
        elif spelled := spelled_lines(text, lines):
            raise ClaimFalse(f"{path} spells out an answer line: {spelled[0]}")
    return f"{count} files read"


def _demand_only_history(root: Path) -> None:
    git = Git(root)
    refs = git.lines("for-each-ref", "--format=%(refname) %(objectname)")
    head = git.run("rev-parse", "HEAD")
    for ref in refs:
        name, commit = ref.split()
        if commit != head:
            raise ClaimFalse(f"{name} leads to {commit}, which is not the starter")
    reachable = {line.split()[0] for line in git.lines("rev-list", "--objects", "HEAD")}
    every = {line.split()[0] for line in git.lines("cat-file", "--batch-all-objects", "--batch-check")}
    if every - reachable:
        raise ClaimFalse(f"{len(every - reachable)} git objects are there that the starter does not reach")
    if (root / ".git" / "objects" / "info" / "alternates").exists():
        raise ClaimFalse("the repository borrows objects from another one")


def _blob_id(data: bytes) -> str:
    import hashlib

    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
