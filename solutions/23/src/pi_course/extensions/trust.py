"""Trust in a project: when it has to be asked for, who answers, and where the answers are kept."""

import contextlib
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from pi_course.extensions.runner import ExtensionEvent, ExtensionRunner
from pi_course.extensions.sources import canonical_path

_PROJECT_RESOURCES = (
    "settings.json",
    "extensions",
    "skills",
    "prompts",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
)
_LOCK_PAUSE = 0.02  # seconds between two tries

AskForTrust: TypeAlias = Callable[[str], bool | Awaitable[bool]]


class TrustStoreError(Exception):
    """The trust store can't be read or written; what it says of a directory is then unknown."""


def requires_trust(cwd: str | os.PathLike[str], *, home: str | os.PathLike[str]) -> bool:
    """Tell whether a project holds anything that may not be used without trust.

    That is a resource in its `.pi`, or `.agents/skills` in it or in a directory above it, up to `home`, whose
    own skills are the user's. Hardened: a dangling link counts, and so does what can't be looked at.
    (Chapter 23, Lab 23.6)
    """
    project, user = Path(canonical_path(cwd)), Path(canonical_path(home))
    if any(_may_exist(project / ".pi" / name) for name in _PROJECT_RESOURCES):
        return True
    for directory in (project, *project.parents):
        if directory == user:
            return False
        if _may_exist(directory / ".agents" / "skills"):
            return True
    return False


def _may_exist(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class TrustStore:
    """Answers by directory in one JSON file, `{"<canonical directory>": true | false}`.

    Readers never wait: the file is replaced as a whole. Writers take turns, across processes too, by a lock
    on `<file>.lock` that ends with its process. Hardened: a damaged file is `TrustStoreError` for readers and
    writers alike, because "nothing is known" would forget every refusal. (Chapter 23, Lab 23.6)
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 2.0) -> None:
        """Keep the answers in `path`; `patience` is how many seconds `set` waits for another writer."""
        self._path = Path(canonical_path(path))
        self._patience = patience

    def get(self, directory: str | os.PathLike[str]) -> bool | None:
        """Return what was said of the directory or of its nearest ancestor, `None` where nothing was."""
        answers = self._read()
        start = Path(canonical_path(directory))
        return next((answers[str(each)] for each in (start, *start.parents) if str(each) in answers), None)

    def set(self, directory: str | os.PathLike[str], value: bool | None) -> None:
        """Keep an answer, or forget it with `None`. Raises TypeError for what only looks like one."""
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"trust is True, False or None, not {value!r}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked():
                answers = self._read()
                answers.pop(canonical_path(directory), None)
                if value is not None:
                    answers[canonical_path(directory)] = value
                self._replace(json.dumps(answers, ensure_ascii=False, indent=2, sort_keys=True) + "\n")
        except (OSError, UnicodeError) as error:
            raise TrustStoreError(f"{self._path} can't be written: {error}") from error

    def _read(self) -> dict[str, bool]:
        try:
            answers: Any = json.loads(self._path.read_bytes().decode(), object_pairs_hook=_distinct)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise TrustStoreError(f"{self._path} can't be read: {error}") from error
        if not (isinstance(answers, dict) and all(isinstance(each, bool) for each in answers.values())):
            raise TrustStoreError(
                f"{self._path} is damaged: expected an object of directories, true or false"
            )
        return answers

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with Path(f"{self._path}.lock").open("ab") as lock:
            deadline = time.monotonic() + self._patience
            while not _try_lock(lock):
                if time.monotonic() >= deadline:
                    raise TrustStoreError(f"{self._path} is held by another process")
                time.sleep(_LOCK_PAUSE)
            yield

    def _replace(self, text: str) -> None:
        """Put a whole new file in the place of the old one."""
        descriptor, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(descriptor)
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink()
            raise


def _try_lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed, unless somebody else has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter on Windows
        return False
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a directory is given twice")
    return dict(pairs)


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
    event = ExtensionEvent("project_trust")
    for handler in runner.handlers(event.type):
        answer = await runner.ask(handler, event)  # what is none of the three is a fault, too
        if answer in ("yes", "no"):
            return bool(answer == "yes")
    known = store.get(cwd)
    if known is None:
        known = default
    if known is None and ask is not None:
        asked = ask(canonical_path(cwd))
        known = await asked if inspect.isawaitable(asked) else asked
    return known is True
