"""The claims that nothing a learner gets holds an answer: the starter, the practice, its git objects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from course.catalog import Chapter, Course
from course.git import Git
from course.trees import base_tree, lab_tests, parent_tree, solution_tree, starter_tree, target_tree
from course.verify.answers import Answers, find_answers
from course.verify.bench import Workbench
from course.verify.claim import ClaimBroken, ClaimFalse, counted


def chapter_answers(bench: Workbench, chapter: Chapter) -> Answers:
    """The answers of all the chapter's teaching files. Raises ClaimFalse where there is none."""
    return bench.shared(f"answers {chapter.id}", lambda: find_chapter_answers(bench.course, chapter))


def find_chapter_answers(course: Course, chapter: Chapter) -> Answers:
    """The answers of a chapter's teaching files. Raises ClaimFalse where there is none, ClaimBroken."""
    parent = parent_tree(course, chapter)
    before = [data.decode() for path, data in parent.items() if path.startswith("src/") and _is_code(path)]
    solution = [data.decode() for path, data in solution_tree(chapter).items() if _is_code(path)]
    try:
        answers = find_answers(solution, before)
    except SyntaxError as error:
        raise ClaimBroken(f"the solution can't be parsed: {error}") from error
    if not answers.lines:
        raise ClaimFalse("there is no answer at all: the solution adds nothing to the parent")
    return answers


def starter_hides(bench: Workbench, chapter: Chapter) -> str:
    """No starter file holds an answer line or a solved body."""
    answers = chapter_answers(bench, chapter)
    tree = starter_tree(chapter)
    for path, data in tree.items():
        _demand_nothing(answers, path, data.decode("utf-8", "replace"), is_test=False)
    lines, bodies = counted(len(answers.lines), "answer line"), len(answers.bodies)
    return f"{counted(len(tree), 'file')}, {lines} and {bodies} bodies looked for"


def _is_code(path: str) -> bool:
    return path.endswith(".py")


def _demand_nothing(answers: Answers, path: str, text: str, *, is_test: bool) -> None:
    try:
        if not _is_code(path):
            found = answers.in_prose(text)
        else:
            found = answers.in_test(text) if is_test else answers.in_code(text)
    except SyntaxError as error:
        raise ClaimBroken(f"{path} can't be parsed: {error.msg}, line {error.lineno}") from error
    if found:
        raise ClaimFalse(f"{path} {found}")


def practice_hides(bench: Workbench, chapter: Chapter, language: str) -> str:
    """A practice's files and git objects hold no answer, and nothing beyond its own history."""
    root = bench.practice(chapter, language)
    _demand_only_history(root)
    secret = _blobs_after(bench.course, chapter) - _blobs_before(bench.course, chapter)
    judged = _blobs_before(bench.course, chapter)
    answers, tests = chapter_answers(bench, chapter), lab_tests(chapter)
    count = 0
    for name, path, text in (*_objects(root, judged), *_files(root)):
        if name in secret:
            raise ClaimFalse(f"{path} is a file of the reference")
        if name not in judged:
            _demand_nothing(answers, path, text, is_test=path in tests)
            judged.add(name)
            count += 1
    return f"{counted(count, 'file')} read that no earlier checkpoint has"


def _demand_only_history(root: Path) -> None:
    """No branch, tag, loose object or other repository leads beyond the starter."""
    git = Git(root)
    head = git.run("rev-parse", "HEAD")
    for ref in git.lines("for-each-ref", "--format=%(refname) %(objectname)"):
        name, commit = ref.split()
        if commit != head:
            raise ClaimFalse(f"{name} leads to {commit[:12]}, which is not the starter")
    beyond = _kinds(git).keys() - {line.split()[0] for line in git.lines("rev-list", "--objects", "HEAD")}
    if beyond:
        more = f" and {len(beyond) - 1} more" if len(beyond) > 1 else ""
        raise ClaimFalse(f"the starter does not reach the git object {min(beyond)[:12]}{more}")
    if (root / ".git" / "objects" / "info" / "alternates").exists():
        raise ClaimFalse("the repository borrows objects from another one")


def _kinds(git: Git) -> dict[str, str]:
    lines = git.lines("cat-file", "--batch-all-objects", "--batch-check")
    return {name: kind for name, kind, _ in (line.split() for line in lines)}


def _objects(root: Path, known: set[str]) -> Iterator[tuple[str, str, str]]:
    """Id, path and text of each file in the repository that is not known."""
    git = Git(root)
    kinds = _kinds(git)
    for line in git.lines("rev-list", "--objects", "HEAD"):
        name, _, path = line.partition(" ")
        if kinds[name] == "blob" and name not in known:
            yield name, path, git.run("cat-file", "blob", name)


def _files(root: Path) -> Iterator[tuple[str, str, str]]:
    """Id, path and text of every file of the practice, whatever its name, its repository apart."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.suffix == ".pyc":
            raise ClaimFalse(f"{relative.as_posix()} is bytecode")
        if path.is_file() and relative.parts[0] != ".git":
            data = path.read_bytes()
            yield _blob_id(data), relative.as_posix(), data.decode("utf-8", "replace")


def _blobs_before(course: Course, chapter: Chapter) -> set[str]:
    """The files of the checkpoints up to the one that the chapter starts from."""
    earlier = course.until(chapter)[:-1]
    trees = [base_tree(course), *(target_tree(course, step) for step in earlier)]
    return {_blob_id(data) for tree in trees for data in tree.values()}


def _blobs_after(course: Course, chapter: Chapter) -> set[str]:
    """The files of the reference from this chapter on."""
    later = course.chapters[course.chapters.index(chapter) :]
    return {_blob_id(data) for step in later for data in solution_tree(step).values()}


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
