"""Trust in a project: when it has to be asked for, who answers, and where the answers are kept."""

import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pi_course.extensions.runner import ExtensionRunner

AskForTrust: TypeAlias = Callable[[str], bool | Awaitable[bool]]


class TrustStoreError(Exception):
    """The trust store can't be read or written; what it says of a directory is then unknown."""


def requires_trust(cwd: str | os.PathLike[str], *, home: str | os.PathLike[str]) -> bool:
    """Tell whether a project holds anything that may not be used without trust.

    In its `.pi` that is settings.json, extensions, skills, prompts, SYSTEM.md or APPEND_SYSTEM.md; else
    `.agents/skills` in it or in a directory above it, up to `home`, whose own skills are the user's.
    Hardened: a dangling link counts, and so does what can't be looked at. (Chapter 23, Lab 23.6)
    """
    # TODO(23.6): look, open nothing.
    raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")


class TrustStore:
    """Answers by directory in one JSON file, `{"<canonical directory>": true | false}`.

    Readers never wait: the file is replaced as a whole. Writers take turns, across processes too. Hardened: a
    damaged file is `TrustStoreError` for readers and writers alike, because "nothing is known" would forget
    every refusal. (Chapter 23, Lab 23.6)
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 2.0) -> None:
        """Keep the answers in `path`; `patience` is how many seconds `set` waits for another writer."""
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")

    def get(self, directory: str | os.PathLike[str]) -> bool | None:
        """Return what was said of the directory or of its nearest ancestor, `None` where nothing was."""
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")

    def set(self, directory: str | os.PathLike[str], value: bool | None) -> None:
        """Keep an answer, or forget it with `None`. Raises TypeError for what only looks like one."""
        # TODO(23.6): nobody may ever see half a file, and no other writer's answer may be lost.
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")


async def resolve_trust(
    *,
    cwd: str | os.PathLike[str],
    runner: ExtensionRunner,
    store: TrustStore,
    default: bool | None = None,
    ask: AskForTrust | None = None,
) -> bool:
    """Decide whether a project is trusted: the extensions first, then the store, the default, the user.

    A `project_trust` handler answers "yes" or "no", which ends it, or "undecided"; one that fails or answers
    anything else is recorded and passed over. `ask` gets the canonical directory, and only where `default` is
    `None`; only True is trust, and without `ask` there is none. Nothing is stored here. Raises what the store
    and `ask` raise. (Chapter 23, Lab 23.6)
    """
    raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")
