"""Trust in a project: when it has to be asked for, who answers, and where the answers are kept."""

# Paths are strings here, spelled as they were given.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH110, PTH114, PTH118, PTH120, PTH123

import contextlib
import fcntl
import itertools
import json
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

from pi_course.extensions.runner import ExtensionEvent, ExtensionRunner
from pi_course.extensions.sources import canonical_path, settle

AskForTrust: TypeAlias = Callable[[str], bool | Awaitable[bool]]

_GUARDED = ("settings.json", "extensions", "skills", "prompts", "SYSTEM.md", "APPEND_SYSTEM.md")
_ANSWERS = {"yes": True, "no": False}


class TrustStoreError(Exception):
    """The trust store can't be read or written; what it says of a directory is then unknown."""


def requires_trust(cwd: str | os.PathLike[str], *, home: str | os.PathLike[str]) -> bool:
    """Tell whether a project holds anything that may not be used without trust.

    In its `.pi` that is settings.json, extensions, skills, prompts, SYSTEM.md or APPEND_SYSTEM.md; else
    `.agents/skills` in it or in a directory above it, up to `home`, whose own skills are the user's.
    Hardened: a dangling link counts, and so does what can't be looked at. (Chapter 23, Lab 23.6)
    """
    project, user = _directory(cwd), _directory(home)
    own = os.path.join(project, ".pi")
    if any(_is_there(own, name) for name in _GUARDED):
        return True
    skilled = itertools.takewhile(lambda folder: folder != user, _upwards(project))
    return any(_is_there(os.path.join(folder, ".agents"), "skills") for folder in skilled)


def _directory(path: str | os.PathLike[str]) -> str:
    return canonical_path(os.path.abspath(path))


def _upwards(folder: str) -> Iterator[str]:
    """Go from a canonical directory to the root."""
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _is_there(folder: str, name: str) -> bool:
    """Tell whether a folder has an entry, if only a dangling link, or won't let anybody see."""
    try:
        os.lstat(os.path.join(folder, name))
    except (FileNotFoundError, NotADirectoryError):
        return os.path.islink(folder) and not os.path.exists(folder)
    except (OSError, ValueError):
        return True
    return True


class TrustStore:
    """Answers by directory in one JSON file, `{"<canonical directory>": true | false}`.

    Readers never wait: the file is replaced as a whole. Writers take turns, across processes too. Hardened: a
    damaged file is `TrustStoreError` for readers and writers alike, because "nothing is known" would forget
    every refusal. (Chapter 23, Lab 23.6)
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 2.0) -> None:
        """Keep the answers in `path`; `patience` is how many seconds `set` waits for another writer."""
        self._path = os.path.abspath(path)
        self._patience = patience

    def get(self, directory: str | os.PathLike[str]) -> bool | None:
        """Return what was said of the directory or of its nearest ancestor, `None` where nothing was."""
        with _told_as_ours(self._path):
            answers = _read(self._path)
        return next((answers[each] for each in _upwards(_directory(directory)) if each in answers), None)

    def set(self, directory: str | os.PathLike[str], value: bool | None) -> None:
        """Keep an answer, or forget it with `None`. Raises TypeError for what only looks like one."""
        if not (value is None or isinstance(value, bool)):
            raise TypeError(f"an answer is True, False or None, not {value!r}")
        file = os.path.realpath(self._path)  # a link in its place stays one
        with _told_as_ours(self._path):
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with _locked(f"{file}.lock", self._patience):
                answers = _read(file)
                key = _directory(directory)
                if value is None:
                    if answers.pop(key, None) is None:
                        return
                else:
                    answers[key] = value
                _replace(file, json.dumps(answers, indent=2, sort_keys=True))


@contextlib.contextmanager
def _told_as_ours(path: str) -> Iterator[None]:
    """Turn what the system or the file's text makes impossible into a `TrustStoreError`."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        raise TrustStoreError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _read(path: str) -> dict[str, bool]:
    """Return the answers; none where the file is missing, and ValueError for one that is damaged."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not be waited for
    except FileNotFoundError:
        return {}
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("not a regular file")
        answers = json.loads(file.read().decode(), object_pairs_hook=_without_doubles)
    if not isinstance(answers, dict) or not all(isinstance(each, bool) for each in answers.values()):
        raise ValueError("damaged: not an object of true and false")
    return answers


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    answers = dict(pairs)
    if len(answers) < len(pairs):
        raise ValueError("damaged: a directory is given twice")
    return answers


@contextlib.contextmanager
def _locked(path: str, patience: float) -> Iterator[None]:
    """Hold the lock of a file among all processes; the system lets go of it when its holder ends."""
    end = time.monotonic() + patience
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise TrustStoreError(f"{path}: held by another process") from None
            time.sleep(0.001)
        yield
    finally:
        os.close(handle)


def _replace(path: str, text: str) -> None:
    """Put a whole new file in the place of the old one; only who holds the lock may."""
    draft = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)  # of a writer that was killed
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(handle)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


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
    directory = _directory(cwd)
    for pair in runner.handlers("project_trust"):
        answer = await runner.ask(pair, ExtensionEvent("project_trust"))
        if answer in _ANSWERS:
            return _ANSWERS[answer]
    known = store.get(directory)
    if known is not None or default is not None:
        return (default if known is None else known) is True
    return ask is not None and await settle(ask(directory)) is True
