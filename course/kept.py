"""What a reset takes away, kept as commits under refs/course/kept in the practice.

Decision: a commit made aside, with an index of its own, because the learner's branch, index and other files
are none of the engine's business. It stands on HEAD, so that `git show` reads as what was not committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course.leftovers import temporary_folder
from course.repository import Repository
from course.snapshot import Snapshot

KEPT = "refs/course/kept/"
_TRIES = 100


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A commit that holds what was there, and the ref that holds the commit."""

    commit: str
    ref: str


def keep(repository: Repository, snapshots: Mapping[str, Snapshot]) -> Kept:
    """Make a commit of HEAD's files, these in their present form, and a ref to it. Raises GitError."""
    head = repository.attempt("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    with temporary_folder("kept") as folder:
        env = {"GIT_INDEX_FILE": str(folder / "index")}
        if head is not None:
            repository.run("read-tree", head, env=env)
        known = os.fsencode(repository.run("ls-files", "-z", "--", *snapshots, env=env))
        repository.run("update-index", "--force-remove", "-z", "--stdin", given=known, env=env)
        lines = b"".join(
            line for name, snapshot in snapshots.items() for line in _index_lines(repository, name, snapshot)
        )
        repository.run("update-index", "-z", "--index-info", given=lines, env=env)
        tree = repository.run("write-tree", env=env)
    parents = ["-p", head] if head is not None else []
    message = f"Kept by course reset: {', '.join(snapshots)}"
    commit = repository.run("commit-tree", tree, *parents, "-m", message)
    return Kept(commit=commit, ref=_name(repository, commit))


def _index_lines(repository: Repository, name: str, snapshot: Snapshot) -> Iterator[bytes]:
    for entry in snapshot.entries:
        blob = repository.run("hash-object", "-w", "--no-filters", "--stdin", given=entry.data)
        path = f"{name}/{entry.path}" if entry.path else name
        yield f"{entry.mode} {blob}\t".encode("ascii") + os.fsencode(path) + b"\0"


def _name(repository: Repository, commit: str) -> str:
    """Give the commit the next free ref; a lock that a killed run left behind only costs its number."""
    refs = repository.run("for-each-ref", "--format=%(refname)", KEPT).split()
    taken = [ref.removeprefix(KEPT) for ref in refs]
    first = max((int(name) for name in taken if name.isdecimal()), default=0) + 1
    for number in range(first, first + _TRIES):
        if repository.attempt("update-ref", f"{KEPT}{number}", commit, "") is not None:
            return f"{KEPT}{number}"
    ref = f"{KEPT}{first + _TRIES}"
    repository.run("update-ref", ref, commit, "")
    return ref
