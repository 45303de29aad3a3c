"""What a reset takes away, kept as commits under refs/course/kept of the practice; and the starter's own files.

Decision: a commit made aside, with an index of its own, because the learner's branch, index and other files
are none of the engine's business. It stands on HEAD, so that `git show` reads as what was uncommitted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.catalog import Chapter, Course
from course.errors import CourseError, EnvironmentFault
from course.git import Git, GitError
from course.history import History, open_history
from course.practice import START_REF, Practice, start_commit
from course.snapshot import Snapshot

KEPT = "refs/course/kept/"
_TRIES = 100


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A commit that holds what was there, and the ref that holds the commit."""

    commit: str
    ref: str


class Keeper:
    """The repository of a practice, its own and no outer one. Raises EnvironmentFault where it has none."""

    def __init__(self, practice: Practice) -> None:
        self._env = {"GIT_DIR": str(practice.root / ".git"), "GIT_LITERAL_PATHSPECS": "1"}
        self._git = Git(practice.root)
        if self._try("rev-parse", "--git-dir") is None:
            raise EnvironmentFault(
                f"{practice.root} has no git repository any more, so that nothing could be kept.",
                "`git init` there makes a new one; then run this again.",
            )

    def keep(self, snapshots: Mapping[str, Snapshot]) -> Kept:
        """Make a commit of HEAD's files with these in their present form, and a ref to it. Raises GitError."""
        head = self._try("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        with tempfile.TemporaryDirectory(prefix="course-kept-") as folder:
            env = {**self._env, "GIT_INDEX_FILE": str(Path(folder, "index"))}
            if head is not None:
                self._git.run("read-tree", head, env=env)
            for name, snapshot in snapshots.items():
                known = self._git.run("ls-files", "-z", "--", name, env=env)
                lines = [f"0 {'0' * 40}\t{path}\0".encode() for path in known.split("\0") if path]
                self._feed(lines + list(self._index_lines(name, snapshot)), env)
            tree = self._git.run("write-tree", env=env)
        parents = ["-p", head] if head is not None else []
        message = f"Kept by course reset: {', '.join(snapshots)}"
        commit = self._git.run("commit-tree", tree, *parents, "-m", message, env=self._env)
        return Kept(commit=commit, ref=self._name(commit))

    def _index_lines(self, name: str, snapshot: Snapshot) -> Iterable[bytes]:
        for entry in snapshot.entries:
            blob = self._store(entry.data)
            path = f"{name}/{entry.path}" if entry.path else name
            yield f"{entry.mode} {blob}\t".encode() + os.fsencode(path) + b"\0"

    def _store(self, data: bytes) -> str:
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            return self._git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=file, env=self._env)

    def _feed(self, lines: Iterable[bytes], env: Mapping[str, str]) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"".join(lines))
            file.seek(0)
            self._git.run("update-index", "-z", "--index-info", stdin=file, env=env)

    def _name(self, commit: str) -> str:
        """Give the commit the next free name; a lock that a killed run left only costs its number."""
        names = self._git.run("for-each-ref", "--format=%(refname)", KEPT, env=self._env).split()
        numbers = [int(number) for name in names if (number := name.removeprefix(KEPT)).isdigit()]
        first = max(numbers, default=0) + 1
        for number in range(first, first + _TRIES):
            ref = f"{KEPT}{number}"
            try:
                self._git.run("update-ref", ref, commit, "0" * 40, env=self._env)
            except GitError:
                if number == first + _TRIES - 1:
                    raise
                continue
            return ref
        raise AssertionError("unreachable")

    def _try(self, *arguments: str) -> str | None:
        try:
            return self._git.run(*arguments, env=self._env)
        except GitError:
            return None

    def start_files(self, names: Sequence[str]) -> dict[str, bytes | None] | None:
        """These files as the starter commit has them; None where that commit is gone."""
        try:
            return read_files(self._git, START_REF, names, self._env)
        except GitError:
            return None


def read_files(
    git: Git, commit: str, names: Sequence[str], env: Mapping[str, str] | None = None
) -> dict[str, bytes | None]:
    """The bytes of some files in a commit, None for one that it has not. Raises GitError."""
    listed = git.run("ls-tree", "-z", commit, "--", *names, env=env).split("\0")
    blobs = {line.partition("\t")[2]: line.partition("\t")[0].split()[2] for line in listed if line}
    return {name: _blob(git, blobs[name], env) if name in blobs else None for name in names}


def _blob(git: Git, blob: str, env: Mapping[str, str] | None) -> bytes:
    with tempfile.TemporaryFile() as file:
        file.write(blob.encode("ascii") + b"\n")
        file.seek(0)
        answer = os.fsencode(git.run("cat-file", "--batch", stdin=file, env=env))
    head, _, rest = answer.partition(b"\n")
    words = head.split()
    if len(words) != 3:
        raise GitError(f"{blob} is not in the repository.")
    return rest[: int(words[2])]


def starter_files(
    course: Course, chapter: Chapter, practice: Practice, names: Sequence[str]
) -> dict[str, bytes | None]:
    """The starter's form of these files: as the practice was made, else as the course has it now."""
    files = Keeper(practice).start_files(names)
    if files is not None:
        return files
    history = open_history(course)
    commit = start_commit(history, chapter, _language(course, history, chapter, practice))
    return read_files(Git(history.repository), commit, names)
