"""A practice's own git repository: never an outer one that the practice happens to lie in."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence

from course.errors import EnvironmentFault
from course.git import Git, GitError
from course.practice import Practice


class Repository:
    """Git in a practice. Every method but `attempt` raises GitError."""

    def __init__(self, practice: Practice) -> None:
        """Raise EnvironmentFault where the practice has no repository any more."""
        self._git = Git(practice.root)
        self._env = {
            "GIT_DIR": str(practice.root / ".git"),
            "GIT_WORK_TREE": str(practice.root),
            "GIT_LITERAL_PATHSPECS": "1",
        }
        if self.attempt("rev-parse", "--git-dir") is None:
            raise EnvironmentFault(
                f"{practice.root} has no git repository any more, so that nothing can be kept.",
                "`git init` there makes a new one; then run this again.",
            )

    def run(self, *arguments: str, given: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run one git command, `given` on its standard input; give its output without the closing newline."""
        own = {**self._env, **(env or {})}
        if given is None:
            return self._git.run(*arguments, env=own)
        with tempfile.TemporaryFile() as file:
            file.write(given)
            file.seek(0)
            return self._git.run(*arguments, stdin=file, env=own)

    def attempt(self, *arguments: str) -> str | None:
        """The output of a git command, None where it fails."""
        try:
            return self.run(*arguments)
        except GitError:
            return None

    def files(self, commit: str, names: Sequence[str]) -> dict[str, bytes | None]:
        """The bytes of some files in a commit, None for one that it has not."""
        listed = self.run("ls-tree", "-z", commit, "--", *names).split("\0")
        blobs = {line.partition("\t")[2]: line.partition("\t")[0].split()[2] for line in listed if line}
        return {name: self._blob(blobs[name]) if name in blobs else None for name in names}

    def _blob(self, blob: str) -> bytes:
        answer = os.fsencode(self.run("cat-file", "--batch", given=blob.encode("ascii") + b"\n"))
        head, _, rest = answer.partition(b"\n")
        words = head.split()
        if len(words) != 3:
            raise GitError(f"{blob} is not in the repository.")
        return rest[: int(words[2])]
