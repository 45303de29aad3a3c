"""Sessions: an append-only tree of entries, the stores that keep them, and the path to one leaf.

Decision: a store keeps entries and judges no tree, because which branch is active is its caller's choice; an
append is one locked write that is taken back when it fails, not a rewrite of the file.
"""

import asyncio
import contextlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Protocol, TypeAlias

from pi_course.messages import AgentMessage, message_from_json, message_to_json
from pi_course.values import JsonValue, clone

try:
    import fcntl
except ImportError:  # Windows: there the appends of one process queue, those of two are on their own
    fcntl = None  # type: ignore[assignment]
_WITHOUT_FLOCK = threading.Lock()


class SessionTreeError(Exception):
    """The entries don't form a tree in which the wanted path exists; the text says which id is at fault."""


class SessionFileError(Exception):
    """A session file holds a line that is no entry; the text says which file, which line and why."""


@dataclass(slots=True)
class MessageEntry:
    """One message of the conversation."""

    type: ClassVar[Literal["message"]] = "message"
    id: str
    parent_id: str | None
    timestamp: int
    message: AgentMessage


@dataclass(slots=True)
class MetadataEntry:
    """A note about the session that no model ever sees."""

    type: ClassVar[Literal["metadata"]] = "metadata"
    id: str
    parent_id: str | None
    timestamp: int
    data: JsonValue


@dataclass(slots=True)
class CompactionEntry:
    """A summary that stands for everything on its path before `first_kept_id`."""

    type: ClassVar[Literal["compaction"]] = "compaction"
    id: str
    parent_id: str | None
    timestamp: int
    summary: str
    first_kept_id: str


SessionEntry: TypeAlias = MessageEntry | MetadataEntry | CompactionEntry


class SessionStore(Protocol):
    """Where a session's entries are kept, in the order in which they were appended."""

    async def entries(self) -> list[SessionEntry]:
        """Give all entries, as deep copies."""

    async def append(self, entry: SessionEntry) -> None:
        """Keep a deep copy of one more entry."""


class InMemorySessionStore:
    """A store that lasts as long as its process."""

    def __init__(self, entries: Iterable[SessionEntry] = ()) -> None:
        self._entries = [_checked(entry) for entry in entries]

    async def entries(self) -> list[SessionEntry]:
        """Give all entries, as deep copies."""
        return clone(self._entries)

    async def append(self, entry: SessionEntry) -> None:
        """Keep a deep copy of one more entry; TypeError or ValueError where it is none."""
        self._entries.append(_checked(entry))


class JsonlSessionStore:
    """A store in a file of one JSON line an entry, safe to share between tasks, stores and processes.

    A missing file is empty. A `durable` append returns when the disk has it.
    A cancelled one may still be made.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = False) -> None:
        self._path = Path(path)
        self._durable = durable

    async def entries(self) -> list[SessionEntry]:
        """Read all entries; SessionFileError at the first line that is none, a torn last line included."""
        return await asyncio.to_thread(self._read)

    async def append(self, entry: SessionEntry) -> None:
        """Add one line, or raise SessionFileError, OSError, ValueError or TypeError and change nothing."""
        await asyncio.to_thread(self._write, _checked(entry))

    def _read(self) -> list[SessionEntry]:
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return []
        with file, _locked(file, exclusive=False):
            content = file.read()
        return self._parse(content)

    def _parse(self, content: bytes) -> list[SessionEntry]:
        lines = content.split(b"\n")  # not splitlines(): text may hold U+2028 and others that it heeds
        torn = len(lines) if lines[-1] else 0
        entries: list[SessionEntry] = []
        for number, line in enumerate(lines if torn else lines[:-1], start=1):
            try:
                entries.append(_from_line(line))
            except (ValueError, RecursionError) as error:
                what = "the last line is torn" if number == torn else "no session entry"
                why = getattr(error, "msg", error)
                raise SessionFileError(f"{self._path}, line {number}: {what}: {why}") from error
        return entries

    def _write(self, entry: SessionEntry) -> None:
        line = _to_line(entry)
        with FileIO(self._path, "a+") as file, _locked(file, exclusive=True):
            size = os.fstat(file.fileno()).st_size
            if self._lacks_newline(file, size):
                line = b"\n" + line
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[file.write(rest) :]
                if self._durable:
                    self._sync(file, created=size == 0)
            except BaseException:
                file.truncate(size)
                raise

    def _lacks_newline(self, file: FileIO, size: int) -> bool:
        """Judge the end of the file: its last line must be an entry, or nothing may follow it."""
        last = _last_line(file, size)
        try:
            if last:
                _from_line(last)
        except (ValueError, RecursionError):
            file.seek(0)
            self._parse(file.readall())  # raises, and says which line
        return bool(last) and not last.endswith(b"\n")

    def _sync(self, file: FileIO, *, created: bool) -> None:
        os.fsync(file.fileno())
        if created and os.name != "nt":  # a new file's name is kept by its folder
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def path_to(entries: Sequence[SessionEntry], leaf_id: str) -> list[SessionEntry]:
    """Follow the parents of a leaf and give the way from the root to it.

    SessionTreeError names the id: one given twice anywhere, an unknown leaf, a missing parent, a cycle.
    """
    ids = [entry.id for entry in entries]
    if len(set(ids)) < len(ids):
        raise SessionTreeError(f"entry id {Counter(ids).most_common(1)[0][0]!r} is there twice")
    path: list[SessionEntry] = []
    wanted: str | None = leaf_id
    for entry in reversed(entries):  # what is only appended to has each parent before its children
        if entry.id == wanted:
            path.append(entry)
            wanted = entry.parent_id
    return path[::-1] if wanted is None else _path_in_any_order(dict(zip(ids, entries, strict=True)), leaf_id)


def _path_in_any_order(by_id: dict[str, SessionEntry], leaf_id: str) -> list[SessionEntry]:
    path: list[SessionEntry] = []
    wanted: str | None = leaf_id
    while wanted is not None:
        if wanted not in by_id:
            child = f", the parent of {path[-1].id!r}" if path else ""
            raise SessionTreeError(f"there is no entry {wanted!r}{child}")
        if len(path) == len(by_id):
            raise SessionTreeError(f"entry {wanted!r} is an ancestor of itself")
        path.append(by_id[wanted])
        wanted = path[-1].parent_id
    return path[::-1]


def _checked(entry: SessionEntry) -> SessionEntry:
    """Give a deep copy; TypeError or ValueError where it is no entry or has a field of the wrong type."""
    if not isinstance(entry, MessageEntry | MetadataEntry | CompactionEntry):
        raise TypeError(f"a session keeps entries, not {type(entry).__name__}")
    try:
        kept = clone(entry)
        _entry_from_json(_entry_to_json(kept))
    except RecursionError as error:
        raise ValueError(f"entry {entry.id!r} is nested too deeply, or holds itself") from error
    return kept


def _entry_to_json(entry: SessionEntry) -> dict[str, Any]:
    head = {"type": entry.type, "id": entry.id, "parentId": entry.parent_id, "timestamp": entry.timestamp}
    if isinstance(entry, MessageEntry):
        return head | {"message": message_to_json(entry.message)}
    if isinstance(entry, MetadataEntry):
        return head | {"data": entry.data}
    return head | {"summary": entry.summary, "firstKeptId": entry.first_kept_id}


def _entry_from_json(data: object) -> SessionEntry:
    """Read one entry; ValueError names the field that is missing or of the wrong type."""
    if not isinstance(data, dict):
        raise ValueError("an entry is a JSON object")

    def field(name: str, *types: type) -> Any:
        if name not in data:
            raise ValueError(f"{name} is missing")
        if types and type(data[name]) not in types:
            raise ValueError(f"{name} can't be {data[name]!r}")
        return data[name]

    kind = field("type", str)
    head = (field("id", str), field("parentId", str, type(None)), field("timestamp", int))
    if kind == "message":
        return MessageEntry(*head, message_from_json(field("message", dict)))
    if kind == "metadata":
        return MetadataEntry(*head, field("data"))
    if kind == "compaction":
        return CompactionEntry(*head, field("summary", str), field("firstKeptId", str))
    raise ValueError(f"type can't be {kind!r}")


def _to_line(entry: SessionEntry) -> bytes:
    """Encode an entry and read it back, so that nothing is written that would come back different."""
    data = _entry_to_json(entry)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    line = text.encode(errors="backslashreplace")  # for half a surrogate pair that is JSON's own escape
    if _from_line(line) != entry:
        raise ValueError(f"entry {entry.id!r} holds something that JSON can't keep")
    return line + b"\n"


def _from_line(line: bytes) -> SessionEntry:
    return _entry_from_json(_DECODER.decode(line.decode()))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(data := dict(pairs)) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return data


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused)


def _last_line(file: FileIO, size: int) -> bytes:
    """Read backwards, in growing steps, to the newline before the last line."""
    start, tail = size, b""
    while start and b"\n" not in tail[:-1]:
        start = file.seek(max(0, size - max(8192, 4 * len(tail))))
        tail = file.readall()
    return tail[tail.rfind(b"\n", 0, -1) + 1 :]


@contextlib.contextmanager
def _locked(file: IO[bytes] | FileIO, *, exclusive: bool) -> Iterator[None]:
    """Let one writer or several readers at a file; a killed process leaves no lock behind."""
    if fcntl is None:
        with _WITHOUT_FLOCK:
            yield
        return
    fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
