"""Chapter 10: entries, the path to a leaf, and the two stores."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pi_course import session
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    message_to_json,
    user_message,
)
from pi_course.values import clone, freeze

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def entry(entry_id: str, parent_id: str | None = None, text: str = "hi") -> session.SessionEntry:
    """A message entry."""
    return session.MessageEntry(entry_id, parent_id, 5, user_message(text, timestamp=1))


def samples() -> list[session.SessionEntry]:
    """Entries of every kind, with messages of every role."""
    call = ToolCall("c", "read", {"path": ["a", 1, 2.5, None, True, {"k": "v"}]})
    messages: list[AgentMessage] = [
        UserMessage([TextContent("a"), TextContent("b")], 1),
        AssistantMessage([TextContent("x"), call], "toolUse", 2),
        AssistantMessage([], "error", 3, "down"),
        ToolResultMessage("c", "read", [TextContent("ok")], False, 4, {"lines": [1, 2]}),
        ToolResultMessage("c", "read", [], True, 4),
    ]
    chain: list[session.SessionEntry] = [
        session.MessageEntry(str(place), str(place - 1) if place else None, 10 + place, message)
        for place, message in enumerate(messages)
    ]
    chain.append(session.MetadataEntry("m", "4", 20, {"title": "日本", "tags": []}))
    chain.append(session.CompactionEntry("s", "m", 21, "what was", "1"))
    return chain


async def soon(work: Awaitable[Any]) -> Any:
    """Await something that may not take long: a hang is a failed assertion."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=60)
    assert done, "still waiting after a minute"
    return task.result()


def stores(tmp_path: Path) -> list[Any]:
    """One store of each kind, both empty."""
    return [session.InMemorySessionStore(), session.JsonlSessionStore(tmp_path / "s.jsonl")]


async def test_stores_give_back_what_was_appended_in_order(tmp_path: Path) -> None:
    """Entries of every kind, frozen ones too, come back equal, in order, and from a new store as well."""
    for store in stores(tmp_path):
        assert await store.entries() == []
        for each in samples():
            await store.append(freeze(each) if each.id == "3" else each)
        back = await store.entries()
        assert back == samples() == clone(samples())
        back[3].message.details["lines"].append(3)
        assert back != samples()
    again = session.JsonlSessionStore(str(tmp_path / "s.jsonl"), durable=True)
    await again.append(entry("late"))
    assert await again.entries() == [*samples(), entry("late")]
    assert await session.InMemorySessionStore(samples()).entries() == samples()


async def test_stores_share_nothing_with_their_callers(tmp_path: Path) -> None:
    """What is changed after `append`, in the list given first or in what `entries` gave, is not kept."""
    given = samples()
    for store in (session.InMemorySessionStore(given), session.JsonlSessionStore(tmp_path / "s.jsonl")):
        for each in samples():
            await store.append(each)
            each.id = "changed"
            if isinstance(each, session.MessageEntry):
                each.message.content.clear()
        for each in [*given, *await store.entries()]:
            if isinstance(each, session.MessageEntry):
                each.message.content.clear()
            if isinstance(each, session.MetadataEntry):
                each.data = None
        assert (await store.entries())[-7:] == samples()


def bad_entries() -> list[Any]:
    """What no store may take."""
    message = user_message("hi", timestamp=1)
    loop: list[Any] = []
    loop.append(loop)
    return [
        None,
        {"type": "message"},
        message,
        session.MessageEntry(7, None, 1, message),  # type: ignore[arg-type]
        session.MessageEntry("a", 7, 1, message),  # type: ignore[arg-type]
        session.MessageEntry("a", None, 1.0, message),  # type: ignore[arg-type]
        session.MessageEntry("a", None, True, message),
        session.MessageEntry("a", None, 1, "text"),  # type: ignore[arg-type]
        session.MessageEntry("a", None, 1, UserMessage("text", 1)),  # type: ignore[arg-type]
        session.MessageEntry("a", None, 1, UserMessage([], None)),  # type: ignore[arg-type]
        session.MetadataEntry("a", None, 1, object()),  # type: ignore[arg-type]
        session.MetadataEntry("a", None, 1, {1: 2}),  # type: ignore[dict-item]
        session.MetadataEntry("a", None, 1, loop),
        session.CompactionEntry("a", None, 1, None, "b"),  # type: ignore[arg-type]
        session.CompactionEntry("a", None, 1, "s", None),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("number", range(len(bad_entries())))
async def test_what_is_no_entry_is_refused(tmp_path: Path, number: int) -> None:
    """A wrong type anywhere, or what JSON would change, is TypeError or ValueError, and nothing is kept."""
    for store in stores(tmp_path):
        await store.append(entry("good"))
        with pytest.raises((TypeError, ValueError)):
            await store.append(bad_entries()[number])
        assert await store.entries() == [entry("good")]
    with pytest.raises((TypeError, ValueError)):
        session.InMemorySessionStore([bad_entries()[number]])
    for data in (float("nan"), float("inf"), (1, 2), {"deep": [(1,)]}):
        with pytest.raises(ValueError):
            await store.append(session.MetadataEntry("a", None, 1, data))  # type: ignore[arg-type]
    assert await store.entries() == [entry("good")]


async def test_line_has_pis_wire_form(tmp_path: Path) -> None:
    """One compact JSON line an entry: its `.type`, id, parentId, timestamp, and what belongs to the type."""
    store = session.JsonlSessionStore(tmp_path / "s.jsonl")
    for each in samples():
        await store.append(each)
    text = (tmp_path / "s.jsonl").read_text(encoding="utf-8")
    assert text.count("\n") == len(samples())
    assert "日本" in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[3] == {
        "type": "message",
        "id": "3",
        "parentId": "2",
        "timestamp": 13,
        "message": message_to_json(samples()[3].message),  # type: ignore[union-attr]
    }
    assert lines[3]["message"]["toolCallId"] == "c"
    data = {"title": "日本", "tags": []}
    assert lines[5] == {"type": "metadata", "id": "m", "parentId": "4", "timestamp": 20, "data": data}
    assert lines[6] == {
        "type": "compaction",
        "id": "s",
        "parentId": "m",
        "timestamp": 21,
        "summary": "what was",
        "firstKeptId": "1",
    }
    assert lines[0]["parentId"] is None
    assert [line["type"] for line in lines] == [each.type for each in samples()]


text = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["\u2028\u2029\x85", "\r\n", "\n", "\0", "\x1c\x0b\x0c", '"\\', "\ufeff", "\ud800", "😀"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
parts = st.builds(TextContent, text)
calls = st.builds(ToolCall, text, text, st.dictionaries(text, json_values, max_size=3))
messages = (
    st.builds(UserMessage, st.lists(parts, max_size=3), st.integers())
    | st.builds(
        AssistantMessage,
        st.lists(parts | calls, max_size=3),
        st.sampled_from(["stop", "toolUse", "length", "error", "aborted"]),
        st.integers(),
        st.none() | text,
    )
    | st.builds(
        ToolResultMessage, text, text, st.lists(parts, max_size=3), st.booleans(), st.integers(), json_values
    )
)
ids = st.tuples(text, st.none() | text, st.integers())
entries = (
    st.builds(lambda head, message: session.MessageEntry(*head, message), ids, messages)
    | st.builds(lambda head, data: session.MetadataEntry(*head, data), ids, json_values)
    | st.builds(lambda head, summary, kept: session.CompactionEntry(*head, summary, kept), ids, text, text)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(entries, max_size=4))
def test_any_entry_reads_back_equal(tmp_path_factory: Any, kept: list[Any]) -> None:
    """Whatever is in ids, texts and data, a new store reads exactly what the first one took."""
    path = tmp_path_factory.mktemp("round") / "s.jsonl"

    async def round_trip() -> list[session.SessionEntry]:
        store = session.JsonlSessionStore(path)
        for each in kept:
            await store.append(each)
        return await session.JsonlSessionStore(path).entries()

    assert asyncio.run(round_trip()) == kept


async def test_file_cut_at_any_byte_is_reported_or_whole(tmp_path: Path) -> None:
    """Cut anywhere, a file gives its whole lines, or SessionFileError from both methods, unchanged."""
    path = tmp_path / "s.jsonl"
    store = session.JsonlSessionStore(path)
    kept = [samples()[1], samples()[5]]
    for each in kept:
        await store.append(each)
    content = path.read_bytes()
    first = content.index(b"\n")
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        whole = {0: 0, first: 1, first + 1: 1, len(content) - 1: 2}.get(cut)
        if whole is None:
            with pytest.raises(session.SessionFileError, match=r"s\.jsonl, line [12]"):
                await store.entries()
            with pytest.raises(session.SessionFileError):
                await store.append(entry("new"))
            assert path.read_bytes() == content[:cut]
        else:
            assert await store.entries() == kept[:whole]
            await store.append(entry("new"))
            assert await store.entries() == [*kept[:whole], entry("new")]


BAD_LINES = {
    "blank": b"",
    "spaces": b"   ",
    "no JSON": b"{]",
    "not an object": b"[1]",
    "two values": b"{} {}",
    "no UTF-8": b'{"type":"metadata","id":"\xff","parentId":null,"timestamp":1,"data":1}',
    "NaN": b'{"type":"metadata","id":"a","parentId":null,"timestamp":1,"data":NaN}',
    "a key twice": b'{"type":"metadata","id":"a","id":"b","parentId":null,"timestamp":1,"data":1}',
    "a key twice inside": b'{"type":"metadata","id":"a","parentId":null,"timestamp":1,"data":{"k":1,"k":1}}',
    "unknown type": b'{"type":"session","id":"a","parentId":null,"timestamp":1}',
    "no type": b'{"id":"a","parentId":null,"timestamp":1,"data":1}',
    "no parent": b'{"type":"metadata","id":"a","timestamp":1,"data":1}',
    "no data": b'{"type":"metadata","id":"a","parentId":null,"timestamp":1}',
    "id is a number": b'{"type":"metadata","id":7,"parentId":null,"timestamp":1,"data":1}',
    "true for a time": b'{"type":"metadata","id":"a","parentId":null,"timestamp":true,"data":1}',
    "a fraction": b'{"type":"metadata","id":"a","parentId":null,"timestamp":1.0,"data":1}',
    "no summary": b'{"type":"compaction","id":"a","parentId":null,"timestamp":1,"firstKeptId":"b"}',
    "bad message": b'{"type":"message","id":"a","parentId":null,"timestamp":1,"message":{"role":"user"}}',
    "message is text": b'{"type":"message","id":"a","parentId":null,"timestamp":1,"message":"hi"}',
    "too deep": b'{"type":"metadata","id":"a","parentId":null,"timestamp":1,"data":' + b"[" * 100_000,
}


@pytest.mark.parametrize("name", BAD_LINES)
async def test_bad_line_is_reported_with_file_and_number(tmp_path: Path, name: str) -> None:
    """A line that is no entry is SessionFileError with the file and the line, wherever it stands."""
    path = tmp_path / "s.jsonl"
    good = session.JsonlSessionStore(path)
    await good.append(entry("a"))
    line = path.read_bytes()
    for content, number in (
        (line + BAD_LINES[name] + b"\n" + line, 2),
        (line + line + BAD_LINES[name] + b"\n", 3),
    ):
        path.write_bytes(content)
        with pytest.raises(session.SessionFileError) as caught:
            await session.JsonlSessionStore(path).entries()
        assert str(path) in str(caught.value)
        assert f"line {number}" in str(caught.value)
    with pytest.raises(session.SessionFileError):
        await good.append(entry("b"))
    assert path.read_bytes() == content


async def test_line_of_another_writer_is_read_by_its_meaning(tmp_path: Path) -> None:
    """Unknown keys, spaces, escapes, CRLF, long lines and a newline left out are no fault; nor is no line."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    store = session.JsonlSessionStore(path)
    assert await store.entries() == []
    path.write_bytes(
        b'{"id" : "\\u00e9", "type":"metadata", "parentId":null, "timestamp":1, "data":[1], "new":{}}\r\n'
    )
    assert await store.entries() == [session.MetadataEntry("é", None, 1, [1])]
    await store.append(entry("long", text="日" * 100_000))  # longer than any block that an append looks at
    await store.append(entry("next"))
    path.write_bytes(path.read_bytes()[:-1])
    await store.append(entry("last"))
    assert [each.id for each in await store.entries()] == ["é", "long", "next", "last"]


async def test_missing_folder_and_folder_as_file_are_clear_errors(tmp_path: Path) -> None:
    """A missing file is empty wherever it is; appending to a missing folder is OSError naming it."""
    store = session.JsonlSessionStore(tmp_path / "no" / "s.jsonl")
    assert await store.entries() == []
    with pytest.raises(FileNotFoundError, match=r"s\.jsonl"):
        await store.append(entry("a"))
    assert not (tmp_path / "no").exists()
    with pytest.raises(OSError):
        await session.JsonlSessionStore(tmp_path).entries()
    with pytest.raises(OSError):
        await session.JsonlSessionStore(tmp_path).append(entry("a"))


@pytest.mark.parametrize("durable", [False, True])
async def test_fsync_only_where_durable(tmp_path: Path, monkeypatch: Any, durable: bool) -> None:
    """A durable append syncs the file, and at its creation the folder; an ordinary one syncs nothing."""
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append("folder" if folder else f"file {os.fstat(descriptor).st_size > 0}")

    monkeypatch.setattr(os, "fsync", fsync)
    store = session.JsonlSessionStore(tmp_path / "s.jsonl", durable=durable)
    await store.append(entry("a"))
    await store.append(entry("b"))
    assert synced == (["file True", "folder", "file True"] if durable else [])


@pytest.mark.skipif(resource is None, reason="needs a limit on file sizes")
async def test_append_that_the_disk_refuses_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """Where `fsync` fails or the disk is full, OSError comes out, the line is taken back, and that is all."""
    path = tmp_path / "s.jsonl"
    store = session.JsonlSessionStore(path, durable=True)
    await store.append(entry("a"))
    path.write_bytes(path.read_bytes()[:-1])
    before = path.read_bytes()

    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="Input/output"):
            await store.append(entry("b"))
    assert path.read_bytes() == before
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))  # a part of the line has room
    try:
        with pytest.raises(OSError):
            await store.append(entry("b", text="x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    await store.append(entry("c"))
    assert [each.id for each in await store.entries()] == ["a", "c"]


async def test_tasks_and_stores_may_append_at_once(tmp_path: Path) -> None:
    """Appends from many tasks through two stores all arrive, each line whole, each task's in its order."""
    path = tmp_path / "s.jsonl"
    both = [session.JsonlSessionStore(path), session.JsonlSessionStore(path, durable=True)]

    async def write(name: int) -> None:
        for place in range(10):
            await both[name % 2].append(entry(f"{name}-{place}", text="x" * 3000))

    await soon(asyncio.gather(*(write(name) for name in range(8))))
    found = [each.id for each in await both[0].entries()]
    assert len(found) == 80
    for name in range(8):
        mine = [each for each in found if each.startswith(f"{name}-")]
        assert mine == [f"{name}-{place}" for place in range(10)]


WRITER = """
    import asyncio, sys
    from pi_course.messages import user_message
    from pi_course.session import JsonlSessionStore, MessageEntry

    async def main(path, name, count):
        store = JsonlSessionStore(path)
        for place in range(int(count)):
            message = user_message("x" * (place * 997 % 9000), timestamp=1)
            await store.append(MessageEntry(f"{name}{place}", None, place, message))
            print(place, flush=True)

    asyncio.run(main(*sys.argv[1:]))
"""

FALLING = """
    import asyncio, os, resource, signal, sys
    from pi_course.messages import user_message
    from pi_course.session import JsonlSessionStore, MessageEntry

    async def main(path, room):
        store = JsonlSessionStore(path)
        await store.append(MessageEntry("a", None, 1, user_message("kept", timestamp=1)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + int(room),) * 2)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        await store.append(MessageEntry("b", "a", 2, user_message("x" * 1000, timestamp=1)))

    asyncio.run(main(*sys.argv[1:]))
"""


def start(script: str, *arguments: object) -> "subprocess.Popen[str]":
    """A process that runs a script with this `pi_course`."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(session.__file__).parents[1])},
    )


async def test_readers_beside_writers_in_other_processes_see_whole_lines(tmp_path: Path) -> None:
    """Two readers beside two writing processes never see half a line, nor less than before: they wait."""
    path = tmp_path / "s.jsonl"
    writers = [start(WRITER, path, name, 60) for name in "ab"]
    seen = 0
    try:
        while any(writer.poll() is None for writer in writers):
            both = [session.JsonlSessionStore(path).entries() for _ in range(2)]
            sizes = [len(view) for view in await soon(asyncio.gather(*both))]
            assert min(sizes) >= seen
            seen = max(sizes)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    found = [each.id for each in await session.JsonlSessionStore(path).entries()]
    for name in "ab":
        assert [each for each in found if each[0] == name] == [f"{name}{place}" for place in range(60)]

    fcntl = pytest.importorskip("fcntl")
    store, path = session.JsonlSessionStore(tmp_path / "held.jsonl"), tmp_path / "held.jsonl"
    await store.append(entry("a"))
    with path.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        line = path.read_bytes().replace(b'"a"', b'"b"')
        file.write(line[:20])
        reading = [asyncio.create_task(store.entries()), asyncio.create_task(store.append(entry("c")))]
        await asyncio.wait(reading, timeout=0.1)
        file.write(line[20:])
    await soon(asyncio.gather(*reading))
    assert len(reading[0].result() or []) >= 2
    assert [each.id for each in await store.entries()] == ["a", "b", "c"]


async def test_killed_writer_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    """After SIGKILL each reported entry is there, followed by at most one more, whole or torn."""
    for wait in (1, 4, 9):
        path = tmp_path / f"{wait}.jsonl"
        writer = start(WRITER, path, "k", 10**6)
        assert writer.stdout is not None
        reported = [await asyncio.to_thread(writer.stdout.readline) for _ in range(wait)]
        writer.kill()
        rest, _ = writer.communicate()
        reported += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        store = session.JsonlSessionStore(path)
        content = path.read_bytes()
        if not content.endswith(b"\n"):  # a long line may be cut between two pages
            with pytest.raises(session.SessionFileError):
                await store.entries()
            path.write_bytes(content[: content.rindex(b"\n") + 1])
        found = [each.timestamp for each in await store.entries()]
        assert found == list(range(len(found)))
        assert len(reported) <= len(found) <= len(reported) + 1
        await store.append(entry("after"))
        assert len(await store.entries()) == len(found) + 1


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on file sizes")
@pytest.mark.parametrize("room", [1, 100])
async def test_writer_killed_inside_an_append_leaves_a_torn_line_that_is_reported(
    tmp_path: Path, room: int
) -> None:
    """A line cut off by its writer's death is SessionFileError for readers and writers, and stays."""
    path = tmp_path / "s.jsonl"
    writer = start(FALLING, path, room)
    writer.communicate()
    assert writer.returncode == -signal.SIGXFSZ
    content = path.read_bytes()
    assert not content.endswith(b"\n")
    store = session.JsonlSessionStore(path)
    for attempt in (store.entries(), store.append(entry("c"))):
        with pytest.raises(session.SessionFileError, match="line 2"):
            await attempt
    assert path.read_bytes() == content
    path.write_bytes(content[: content.index(b"\n") + 1])
    assert [each.id for each in await store.entries()] == ["a"]


async def test_hundred_thousand_entries_are_kept_and_found(tmp_path: Path) -> None:
    """A file of 100,000 entries is read whole, appended to and followed along its path."""
    path = tmp_path / "s.jsonl"
    store = session.JsonlSessionStore(path)
    await store.append(entry("seed"))
    line = path.read_text(encoding="utf-8")
    count = 100_000
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            parent = f'"{number - 1}"' if number else "null"
            file.write(line.replace('"seed"', f'"{number}"').replace("null", parent, 1))
    await store.append(entry("leaf", str(count - 1)))
    found = await soon(store.entries())
    assert len(found) == count + 1
    assert len(session.path_to(found, "leaf")) == count + 1


def test_path_goes_from_the_root_to_the_leaf() -> None:
    """`path_to` gives the leaf's ancestors, root first; faults of other branches are none of its business."""
    tree = [entry("root"), entry("left", "root"), entry("right", "root"), entry("leaf", "right")]
    assert [each.id for each in session.path_to(tree, "leaf")] == ["root", "right", "leaf"]
    assert [each.id for each in session.path_to(tree[::-1], "left")] == ["root", "left"]
    assert session.path_to(tree, "root") == tree[:1]
    assert session.path_to(samples(), "s") == samples()
    tree += [entry("orphan", "lost"), entry("x", "y"), entry("y", "x")]
    assert [each.id for each in session.path_to(tree, "leaf")] == ["root", "right", "leaf"]


@pytest.mark.parametrize(
    ("tree", "leaf", "named"),
    [
        ([], "gone", "gone"),
        ([entry("a")], "gone", "gone"),
        ([entry("a"), entry("twin"), entry("twin", "a")], "a", "twin"),
        ([entry("a", "lost"), entry("b", "a"), entry("other")], "b", "lost"),
        ([entry("self", "self")], "self", "self"),
        ([entry("a", "ring"), entry("ring", "a"), entry("b", "a"), entry("other")], "b", "ring|a"),
    ],
)
def test_fault_on_the_way_names_the_id(tree: list[Any], leaf: str, named: str) -> None:
    """A duplicate, an unknown leaf, a missing parent and a cycle are SessionTreeError saying which id."""
    with pytest.raises(session.SessionTreeError, match=named):
        session.path_to(tree, leaf)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_path_of_any_tree_is_its_parent_chain(data: st.DataObject) -> None:
    """In any tree, in any order, the path starts at a root, follows the parents and ends with the leaf."""
    size = data.draw(st.integers(1, 12))
    parents = [None] + [data.draw(st.none() | st.integers(0, place - 1)) for place in range(1, size)]
    tree = [
        entry(str(place), None if parent is None else str(parent)) for place, parent in enumerate(parents)
    ]
    leaf = str(data.draw(st.integers(0, size - 1)))
    path = session.path_to(data.draw(st.permutations(tree)), leaf)
    assert path[0].parent_id is None
    assert path[-1].id == leaf
    assert [each.parent_id for each in path[1:]] == [each.id for each in path[:-1]]
