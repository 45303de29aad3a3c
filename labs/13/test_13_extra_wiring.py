"""Chapter 13, hardening: restoring, projecting and writing, at their edges."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pi_course import agent, composition, context
from pi_course.events import AgentRunResult
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
    user_message,
)
from pi_course.model import MessageDone, ModelContext, ModelEvent, ScriptedModel, TextDelta, collect
from pi_course.resources import (
    InstructionsResource,
    ResourceCatalog,
    SkillResource,
    TemplateResource,
)
from pi_course.session import (
    CompactionEntry,
    InMemorySessionStore,
    MessageEntry,
    MetadataEntry,
    SessionEntry,
    SessionTreeError,
    path_to,
)
from pi_course.signals import AbortController, AbortSignal
from pi_course.tools import ToolRegistry
from pi_course.values import clone

pytestmark = pytest.mark.extra13

T = TypeVar("T")
PATIENCE = 10.0  # seconds: how long a test waits before it calls a hang a failure


def said(text: str, *calls: ToolCall) -> AssistantMessage:
    """An assistant message with this text and these calls."""
    return AssistantMessage([TextContent(text), *calls], "toolUse" if calls else "stop", 2)


def kept(entry_id: str, parent_id: str | None, message: AgentMessage) -> MessageEntry:
    """A message as a session keeps it."""
    return MessageEntry(entry_id, parent_id, 1, message)


def old_branch() -> list[SessionEntry]:
    """A session with one question and its answer."""
    return [
        kept("old-user", None, user_message("old question", timestamp=1)),
        kept("old-assistant", "old-user", said("old answer")),
    ]


def texts(messages: Iterable[AgentMessage]) -> list[str]:
    """What the messages say."""
    return [text_of(message) for message in messages]


def length(value: AgentMessage | str) -> int:
    """The tests' estimator: a token is a character of text."""
    return len(value if isinstance(value, str) else text_of(value))


def echo(context: ModelContext) -> AssistantMessage:
    """A reply that says what was said last."""
    return said(f"re: {text_of(context.messages[-1])}")


class Echo:
    """A model that echoes for ever and counts how often it is asked."""

    def __init__(self) -> None:
        self.requests = 0

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Echo the last message."""
        self.requests += 1
        return ScriptedModel([echo]).stream(context, signal)


class Store(InMemorySessionStore):
    """A store that can wait for a gate, fail by itself, and counts the attempts."""

    def __init__(self, entries: Iterable[SessionEntry] = (), *, closed: bool = False) -> None:
        super().__init__(entries)
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()
        self.attempts = 0
        self.failure: BaseException | None = None
        if not closed:
            self.gate.set()

    async def append(self, entry: SessionEntry) -> None:
        """Pass the gate, then keep the entry or fail."""
        self.attempts += 1
        self.waiting.set()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        await super().append(entry)

    async def said(self) -> list[str]:
        """What the kept messages say."""
        return [text_of(entry.message) for entry in await self.entries() if isinstance(entry, MessageEntry)]


async def made(session: Any, model: Any = None, leaf_id: str | None = None, **options: Any) -> Any:
    """A runtime with room enough; ids count from entry-1."""
    ids = iter(range(1, 100_000))
    parts = {
        "tools": ToolRegistry(),
        "resources": ResourceCatalog([], [], [], []),
        "create_id": lambda: f"entry-{next(ids)}",
        "now": lambda: 1000,
    }
    settings = {name: options.pop(name) for name in ("system_prompt", "max_steps") if name in options}
    budget = options.pop("context", None) or composition.ContextBudget(1_000_000, length)
    config = composition.RuntimeConfig(leaf_id, budget, **settings)
    deps = composition.RuntimeDeps(model=model or Echo(), session=session, **(parts | options))
    return await composition.create_runtime(config, deps)


async def soon(awaitable: Awaitable[T]) -> T:
    """Await with a bound, so that a hang is a failed assertion."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=PATIENCE)
    if not done:
        task.cancel()
    assert done, "nothing came of it in time"
    return task.result()


async def error_of(awaitable: Awaitable[Any]) -> BaseException | None:
    """The very error that comes out, whatever its class; a failed assertion is not caught."""
    try:
        async with asyncio.timeout(PATIENCE):
            await awaitable
    except (AssertionError, NotImplementedError):
        raise
    except BaseException as error:
        if isinstance(error, TimeoutError):
            raise AssertionError("nothing came of it in time") from error
        return error
    return None


# --- restoring ---


async def test_an_empty_leaf_name_is_a_name_not_none() -> None:
    """Only None stands for a new session; every other leaf is looked for in the tree, with its diagnosis."""
    orphan = [kept("child", "lost", user_message("hi"))]
    twice = [*old_branch(), kept("old-user", None, user_message("again"))]
    for entries, leaf_id in (([], ""), (old_branch(), ""), (orphan, "child"), (twice, "old-assistant")):
        with pytest.raises(SessionTreeError):
            await made(InMemorySessionStore(entries), leaf_id=leaf_id)
    nameless = [kept("", None, user_message("an empty id is an id"))]
    runtime = await made(InMemorySessionStore(nameless), leaf_id="")
    assert texts(runtime.control.get_state().messages) == ["an empty id is an id"]


async def test_the_leaf_may_be_any_entry_of_the_path() -> None:
    """A metadata or compaction leaf is the parent of what comes next, and counts for no message."""
    entries = [
        *old_branch(),
        CompactionEntry("summary", "old-assistant", 1, "long story", "old-assistant"),
        MetadataEntry("note", "summary", 1, {"title": "x"}),
    ]
    store, model = Store(entries), ScriptedModel([said("one"), said("two")])
    runtime = await made(store, model, leaf_id="note")
    await soon(runtime.prompt("first"))
    await soon(runtime.prompt("second"))
    added = (await store.entries())[4:]
    assert [entry.parent_id for entry in added] == ["note", "entry-1", "entry-2", "entry-3"]
    assert texts(runtime.control.get_state().messages)[:2] == ["old question", "old answer"]
    first, second = (texts(request.messages) for request in model.requests)
    assert "long story" in first[0]
    assert first[1:] == ["old answer", "first"]
    assert second == [*first, "one", "second"]


async def test_an_inner_node_starts_a_second_branch() -> None:
    """Prompting from an older leaf leaves the other branch alone and never mixes it in."""
    store, model = Store(old_branch()), Echo()
    runtime = await made(store, model, leaf_id="old-user")
    await soon(runtime.prompt("another way"))
    entries = await store.entries()
    assert [entry.parent_id for entry in entries] == [None, "old-user", "old-user", "entry-1"]
    assert texts(runtime.control.get_state().messages)[0::2] == ["old question", "re: another way"]


async def test_defaults_give_fresh_ids_and_the_present_in_milliseconds() -> None:
    """Without `create_id` and `now` entries get distinct ids and plausible times; a leaf must be said."""
    store = Store()
    budget = composition.ContextBudget(1000, length)
    parts = (Echo(), ToolRegistry(), store, ResourceCatalog([], [], [], []))
    runtime = await composition.create_runtime(
        composition.RuntimeConfig(None, budget), composition.RuntimeDeps(*parts)
    )
    result = await soon(runtime.prompt("hi"))
    entries = await store.entries()
    assert len({entry.id for entry in entries}) == 2
    assert all(isinstance(entry.id, str) and entry.id for entry in entries)
    assert all(type(entry.timestamp) is int for entry in entries)
    assert all(0 <= entry.timestamp - result.messages[0].timestamp < 60_000 for entry in entries)
    assert runtime.extensions is None
    with pytest.raises(TypeError):
        composition.RuntimeConfig(context=budget)


async def test_the_parts_of_the_configuration_reach_the_agent() -> None:
    """Steps are bounded as configured, and both halves of the system prompt may be missing."""
    rule = InstructionsResource("AGENTS", "/w/AGENTS.md", "/w", "RULE\n")
    skill = SkillResource("review", "look closely", "/w/s/SKILL.md", "/w/s")
    template = TemplateResource("t", "/w/t.md", "/w", "BODY")
    empty, full = ResourceCatalog([], [], [], []), ResourceCatalog([rule, skill], [rule], [skill], [])
    only_templates = ResourceCatalog([template], [], [], [template])
    resources = "# Pi resources\n\nRULE\n\nreview: look closely"
    for base, catalog, expected in (
        (None, empty, None),
        ("", only_templates, None),
        ("BASE", only_templates, "BASE"),
        ("BASE", empty, "BASE"),
        (None, full, resources),
        ("", full, resources),
        ("BASE", full, f"BASE\n\n{resources}"),
    ):
        model = ScriptedModel([said("ok")])
        runtime = await made(Store(), model, system_prompt=base, resources=catalog)
        await soon(runtime.prompt("hi"))
        assert model.requests[0].system_prompt == expected
        assert runtime.resources is catalog
    call = ToolCall("c", "nothing", {})
    for steps in (1, 2):
        runtime = await made(Store(), ScriptedModel([said("", call)] * 5), max_steps=steps)
        result = await soon(runtime.prompt("hi"))
        assert (result.reason, result.steps) == ("max_steps", steps)


async def test_initial_messages_may_be_any_sequence_and_none_are_needed() -> None:
    """The Agent takes a tuple as well as a list, keeps neither, and starts empty by default."""
    history = (user_message("a"), said("b", ToolCall("c", "t", {"deep": [1]})))
    expected = clone(list(history))
    one = agent.Agent(model=Echo(), tools=ToolRegistry(), initial_messages=history)
    two = agent.Agent(model=Echo(), tools=ToolRegistry(), initial_messages=history)
    history[1].content[1].arguments["deep"].append(2)
    assert one.get_state().messages == expected
    await soon(one.prompt("only one"))
    assert two.get_state().messages == expected
    assert agent.Agent(model=Echo(), tools=ToolRegistry()).get_state().messages == []


# --- projecting ---


def projecting(inner: Any, snapshot: Any, total: int = 10_000, system_prompt: str | None = None) -> Any:
    """An adapter with this snapshot."""
    return composition.create_context_projecting_model(
        inner,
        system_prompt=system_prompt,
        context=composition.ContextBudget(total, length),
        get_snapshot=lambda: snapshot,
    )


@pytest.mark.parametrize("count", [True, False, None, "1", 1.0, -1, 2])
async def test_a_bad_count_never_reaches_the_inner_model(count: Any) -> None:
    """The count is an integer from 0 to the number of messages, and True is none."""
    inner = Echo()
    model = projecting(inner, composition.ContextProjectionSnapshot([], count))
    with pytest.raises(ValueError):
        await collect(model.stream(ModelContext([user_message("x")], None, []), AbortController().signal))
    assert inner.requests == 0


async def test_both_bounds_of_the_count_are_allowed() -> None:
    """With 0 everything is suffix, with the number of messages nothing is."""
    seen: list[list[str]] = []

    def note(context: ModelContext) -> AssistantMessage:
        seen.append(texts(context.messages))
        return said("ok")

    context = ModelContext([user_message("a"), said("b")], None, [])
    path = [kept("1", None, user_message("a")), kept("2", "1", said("b"))]
    for snapshot in (
        composition.ContextProjectionSnapshot([], 0),
        composition.ContextProjectionSnapshot(tuple(path), 2),
    ):
        model = projecting(ScriptedModel([note]), snapshot)
        await collect(model.stream(context, AbortController().signal))
    assert seen == [["a", "b"], ["a", "b"]]


async def test_a_compaction_on_the_path_is_projected_with_the_suffix_behind_it() -> None:
    """Its summary and what it keeps come first; an entry with a temporary id is found as well."""
    for taken in ("m2", "__runtime_context_0", "__runtime_context_1"):
        path = [
            kept("first", None, user_message("forgotten")),
            kept("second", "first", said("forgotten too")),
            kept(taken, "second", user_message("kept")),
            kept("_" + taken, taken, said("kept too")),
            CompactionEntry("sum", "_" + taken, 1, "SUMMARY", taken),
        ]
        inner = ScriptedModel([said("ok")])
        model = projecting(inner, composition.ContextProjectionSnapshot(path, 4))
        suffix: list[AgentMessage] = [user_message("now"), said("so far"), user_message("steer")]
        messages = [entry.message for entry in path if isinstance(entry, MessageEntry)]
        await collect(model.stream(ModelContext(messages + suffix, None, []), AbortController().signal))
        got = texts(inner.requests[0].messages)
        assert "SUMMARY" in got[0]
        assert got[1:] == ["kept", "kept too", "now", "so far", "steer"]


async def test_the_suffix_is_chained_to_the_leaf_under_ids_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What `build_context` gets is one proper path: the stored entries, then the temporary ones."""
    paths: list[list[SessionEntry]] = []
    original = context.build_context

    def spy(active_path: Any, **options: Any) -> Any:
        paths.append(clone(list(active_path)))
        return original(active_path, **options)

    monkeypatch.setattr(context, "build_context", spy)
    monkeypatch.setattr(composition, "build_context", spy, raising=False)
    suffix: list[AgentMessage] = [user_message("now"), said("so far"), user_message("steer")]
    stored: list[SessionEntry] = [
        kept("__runtime_context_0", None, user_message("a")),
        kept("___runtime_context_0", "__runtime_context_0", said("b")),
        MetadataEntry("__runtime_context_2", "___runtime_context_0", 1, None),
    ]
    for path, ids in (
        ([], ["__runtime_context_0", "__runtime_context_1", "__runtime_context_2"]),
        (stored, ["____runtime_context_0", "__runtime_context_1", "___runtime_context_2"]),
    ):
        messages = [entry.message for entry in path if isinstance(entry, MessageEntry)]
        model = projecting(Echo(), composition.ContextProjectionSnapshot(path, len(messages)))
        await collect(model.stream(ModelContext(messages + suffix, None, []), AbortController().signal))
        given = paths.pop()
        assert given[: len(path)] == path
        added = given[len(path) :]
        assert [entry.id for entry in added] == ids
        assert [entry.message for entry in added if isinstance(entry, MessageEntry)] == suffix
        assert path_to(given, ids[-1]) == given
        assert all(type(entry.timestamp) is int for entry in added)


async def test_the_adapter_has_the_last_word_on_the_system_prompt_only() -> None:
    """The request's own system prompt is not used, and the stream is the inner model's, event by event."""
    inner = ScriptedModel([said("ok"), said("ok")])
    snapshot = composition.ContextProjectionSnapshot([], 0)
    for system_prompt in ("OURS", None):
        model = projecting(inner, snapshot, system_prompt=system_prompt)
        context = ModelContext([user_message("x")], "theirs", [])
        events = [event async for event in model.stream(context, AbortController().signal)]
        assert events == [TextDelta("ok"), MessageDone(said("ok"))]
        assert inner.requests[-1].system_prompt == system_prompt


async def test_temporary_entries_use_no_ids_and_reach_no_store() -> None:
    """Ids are asked for once an entry, in order, and only for what is stored."""
    asked: list[str] = []

    def create_id() -> str:
        asked.append(f"id-{len(asked)}")
        return asked[-1]

    store, call = Store(), ToolCall("c", "nothing", {})
    model = ScriptedModel([said("", call), said("", call), said("done"), said("again")])
    runtime = await made(store, model, create_id=create_id)
    await soon(runtime.prompt("go"))
    await soon(runtime.prompt("on"))
    assert [entry.id for entry in await store.entries()] == asked
    assert len(asked) == 8
    assert [len(request.messages) for request in model.requests] == [1, 3, 5, 7]


async def test_a_budget_that_does_not_suffice_fails_the_run_not_the_runtime() -> None:
    """The run is closed with an error message that is stored like any other; a smaller prompt goes on."""
    store = Store()
    runtime = await made(store, context=composition.ContextBudget(10, length))
    result = await soon(runtime.prompt("far too long for this budget"))
    assert result.reason == "error"
    assert result.messages[-1].stop_reason == "error"
    assert (await soon(runtime.prompt("short"))).reason == "stop"
    assert len(await store.entries()) == 4


# --- modes ---


class Fake:
    """A runtime as a mode sees it."""

    def __init__(self, outcome: AgentRunResult | Exception) -> None:
        self.outcome, self.prompts = outcome, 0

    async def prompt(self, _value: str) -> AgentRunResult:
        """Give the outcome."""
        self.prompts += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def written_by(runtime: Any, mode: Any) -> list[str]:
    """What a mode writes."""
    out: list[str] = []

    async def write(text: str) -> None:
        out.append(text)

    await soon(composition.run_mode(runtime, mode, "go", SimpleNamespace(write=write)))
    return out


async def test_json_is_one_compact_line_in_wire_shape() -> None:
    """Keys in the order reason, steps, messages; non-ASCII as it is; line ends inside strings escaped."""
    messages = [UserMessage([TextContent("你\n好")], 1), AssistantMessage([], "error", 2, "坏了")]
    (line,) = await written_by(Fake(AgentRunResult("error", 3, messages)), "json")
    assert line == (
        '{"reason":"error","steps":3,"messages":'
        '[{"role":"user","content":[{"type":"text","text":"你\\n好"}],"timestamp":1},'
        '{"role":"assistant","content":[],"stopReason":"error","errorMessage":"坏了","timestamp":2}]}\n'
    )
    assert json.loads(line)["steps"] == 3


async def test_the_last_assistant_counts_even_where_it_says_nothing() -> None:
    """Not the last that has text, not the last message: the last assistant, its text without a newline."""
    result = ToolResultMessage("c", "t", [TextContent("result")], False, 3)
    silent = AssistantMessage([ToolCall("c", "t", {})], "toolUse", 2)
    cases: list[tuple[list[AgentMessage], str]] = [
        ([user_message("go"), said("early"), silent, result], ""),
        ([user_message("go"), said("first\n"), user_message("more")], "first\n"),
        ([user_message("go")], ""),
        ([], ""),
    ]
    for messages, expected in cases:
        for mode in ("interactive", "print"):
            assert await written_by(Fake(AgentRunResult("aborted", 1, messages)), mode) == [expected]


@pytest.mark.parametrize("mode", ["Print", "json ", "rpc", "", None, 1, ["json"]])
async def test_no_other_mode_exists(mode: Any) -> None:
    """Anything but the three names is ValueError, and nothing has happened."""
    runtime = Fake(AgentRunResult("stop", 1, []))
    with pytest.raises(ValueError):
        await written_by(runtime, mode)
    assert runtime.prompts == 0


async def test_a_failed_output_rolls_nothing_back() -> None:
    """The session keeps what it accepted, the runtime goes on; a failed prompt writes nothing."""
    store = Store()
    runtime = await made(store)
    broken = OSError("screen")

    async def write(_text: str) -> None:
        raise broken

    for mode in ("interactive", "print", "json"):
        assert (
            await error_of(composition.run_mode(runtime, mode, "go", SimpleNamespace(write=write))) is broken
        )
    assert await store.said() == ["go", "re: go"] * 3
    failure = ValueError("from the prompt")
    out: list[str] = []
    with contextlib.suppress(ValueError):
        out = await written_by(Fake(failure), "print")
    assert out == []
    assert await error_of(written_by(Fake(failure), "json")) is failure
