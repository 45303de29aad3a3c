"""The one door to git: GitPython with the user's configuration and environment shut out.

Decision: the user's `GIT_*` variables are taken out of this process for good, and git is pointed away from
the user's files, because GitPython and Copier pass the whole environment on, a stray GIT_DIR would lead a
command into another repository, and putting things back would race with other threads.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from course.errors import EnvironmentFault

if TYPE_CHECKING:
    from git import Git as Command

# Serves a fetch from a folder that another user owns, as a class's shared cache is: git doesn't hand the
# settings below on to the process that serves.
UPLOAD_PACK = 'git -c "safe.directory=*" upload-pack'

_LOCK = threading.Lock()
_ROOM = 256 * 1024
_FULL = ("No space left on device", "Disk quota exceeded")

_SETTINGS = {
    "safe.directory": "*",
    "safe.bareRepository": "all",
    "protocol.allow": "always",
    "protocol.file.allow": "always",
    "core.hooksPath": os.devnull,
    "core.autocrlf": "false",
    "core.eol": "lf",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.quotePath": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "init.defaultBranch": "main",
    "init.templateDir": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    "fastimport.unpackLimit": "1",
    "transfer.unpackLimit": "1",
    "advice.detachedHead": "false",
    "user.name": "Course learner",
    "user.email": "learner@course.invalid",
    "user.useConfigOnly": "false",
}


_SHUT_OUT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}


class GitError(EnvironmentFault):
    """A git command failed where it should not; the text holds git's own words."""


def _environment() -> dict[str, str]:
    env = {
        **_SHUT_OUT,
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_DEFAULT_HASH": "sha1",
        "LC_ALL": "C",
    }
    for index, (key, value) in enumerate(_SETTINGS.items()):
        env[f"GIT_CONFIG_KEY_{index}"] = key
        env[f"GIT_CONFIG_VALUE_{index}"] = value
    return env


def _command() -> Command:
    """GitPython's command, in a process that knows nothing of the user's git.

    It is given the root, which is always there, and not the folder that is meant, in whose name it would
    expand `$HOME`: git's own -C takes that as it is, whatever another thread does with the current directory.
    """
    shut_out_user()
    try:
        from git import Git as Command
    except ImportError as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
        raise EnvironmentFault(f"git does not work here: {reason}.", "Install git 2.29 or newer.") from error

    return Command(os.sep)


def _program() -> str:
    """Git's full path: Copier's own tools swap the process's environment for moments, PATH with it.

    Raises EnvironmentFault where there is none.
    """
    found = shutil.which("git")
    if found is None:
        raise _no_git()
    return str(Path(found).absolute())


def _no_git() -> EnvironmentFault:
    return EnvironmentFault("git was not found on PATH.", "Install git, then run this again.")


def shut_out_user() -> None:
    """Take the user's git variables and configuration out of this process, for its children too."""
    # Without GIT_PYTHON_REFRESH a missing git ends GitPython's import; the command itself reports it better.
    wanted = {**_SHUT_OUT, "GIT_PYTHON_REFRESH": "quiet"}
    with _LOCK:
        for key in [key for key in os.environ if key.startswith("GIT_") and key not in wanted]:
            os.environ.pop(key, None)
        os.environ.update(wanted)


class Git:
    """Git commands in one folder. Every method raises GitError, or EnvironmentFault where git is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, *arguments: str, stdin: BinaryIO | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Run one git command and give its output without the closing newline."""
        command = _command()
        from git.exc import GitCommandError, GitCommandNotFound

        try:
            output = command.execute(
                [_program(), "-C", str(self.folder.absolute()), *arguments],
                istream=stdin,
                env={**_environment(), **(env or {})},
                strip_newline_in_stdout=True,
            )
        except GitCommandNotFound as error:
            raise _no_git() from error
        except GitCommandError as error:
            raise self._error(arguments, str(error.stderr)) from error
        return str(output)

    def _error(self, arguments: Sequence[str], stderr: str) -> EnvironmentFault:
        text = stderr.strip().removeprefix("stderr:").strip().strip("'").strip()
        if any(words in text for words in _FULL) or self._disk_is_full():
            return EnvironmentFault(
                "The disk is full: git could not write.", "Make room, then run this again."
            )
        return GitError(f"git {arguments[0]} failed: {' '.join(text.split()) or 'no reason given'}")

    def _disk_is_full(self) -> bool:
        """Whether there is no room to speak of: git often says only that it could not write."""
        try:
            return shutil.disk_usage(self.folder).free < _ROOM
        except OSError:
            return False

    def lines(self, *arguments: str) -> list[str]:
        """Run one git command and give its output's lines."""
        output = self.run(*arguments)
        return output.split("\n") if output else []

    def succeeds(self, *arguments: str) -> bool:
        """Whether a git command ends well."""
        try:
            self.run(*arguments)
        except GitError:
            return False
        return True


def enclosing_repository(folder: Path) -> Path | None:
    """The git work tree that a folder lies in, found without running git."""
    for parent in (folder, *folder.parents):
        if (parent / ".git").exists():
            return parent
    return None
