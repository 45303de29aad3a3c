"""Chapter 13: one runtime from a chosen leaf to a committed prompt, and its three modes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pi_course import agent, composition
from pi_course.context import ContextBudgetError
from pi_course.events import AgentRunResult
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    message_to_json,
    text_of,
    user_message,
)
from pi_course.model import ModelContext, ModelEvent, ScriptedModel, ToolSchema, collect
from pi_course.resources import (
    ExtensionHost,
    ExtensionSource,
    HookDecision,
    ResourceCatalog,
    create_extension_host,
    discover_resources,
    load_extension,
)
from pi_course.schema import ToolDefinition
from pi_course.session import (
    CompactionEntry,
    InMemorySessionStore,
    MessageEntry,
    MetadataEntry,
    SessionEntry,
    SessionTreeError,
)
from pi_course.signals import AbortController, AbortSignal
from pi_course.tools import ToolRegistry
from pi_course.values import clone

T = TypeVar("T")
PATIENCE = 5.0  # seconds: how long a test waits before it calls a hang a failure


def said(text: str, *calls: ToolCall) -> AssistantMessage:
    """An assistant message with this text and these calls."""
    return AssistantMessage([TextContent(text), *calls], "toolUse" if calls else "stop", 2)


def kept(entry_id: str, parent_id: str | None, message: AgentMessage) -> MessageEntry:
    """A message as a session keeps it."""
    return MessageEntry(entry_id, parent_id, 1, message)


def old_branch() -> list[SessionEntry]:
    """The restored session of the chapter's example: a user message and its answer."""
    return [
        kept("old-user", None, user_message("继续检查 parser", timestamp=1)),
        kept("old-assistant", "old-user", said("我会先看现有实现")),
    ]


def texts(messages: Iterable[AgentMessage]) -> list[str]:
    """What the messages say."""
    return [text_of(message) for message in messages]


def length(value: AgentMessage | str) -> int:
    """The tests' estimator: a token is a character of text."""
    return len(value if isinstance(value, str) else text_of(value))


def budget(total: int = 10_000, **parts: int) -> Any:
    """A context budget in the tests' tokens."""
    return composition.ContextBudget(total, length, **parts)


def config(leaf_id: str | None, **options: Any) -> Any:
    """A runtime's configuration with room enough."""
    return composition.RuntimeConfig(leaf_id, budget(), **options)


def deps(session: Any, replies: Iterable[Any] = (), **parts: Any) -> Any:
    """Parts of a runtime; ids count from entry-1, times from 1000."""
    ids, times = iter(range(1, 1000)), iter(range(1000, 2000))
    given = {
        "model": ScriptedModel(replies),
        "tools": ToolRegistry(),
        "session": session,
        "resources": ResourceCatalog([], [], [], []),
        "create_id": lambda: f"entry-{next(ids)}",
        "now": lambda: next(times),
    }
    return composition.RuntimeDeps(**(given | parts))


class LiveStore:
    """A careless store: it hands out its own entries and keeps the very objects it is given."""

    def __init__(self, entries: list[SessionEntry]) -> None:
        self.live = entries

    async def entries(self) -> list[SessionEntry]:
        """Give the entries themselves."""
        return self.live

    async def append(self, entry: SessionEntry) -> None:
        """Keep the entry itself."""
        self.live.append(entry)


class KeepingModel:
    """A model that keeps every context and signal as it gets them, and answers "ok"."""

    def __init__(self) -> None:
        self.contexts: list[ModelContext] = []
        self.signals: list[AbortSignal] = []

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Keep the request and answer it."""
        self.contexts.append(context)
        self.signals.append(signal)
        return ScriptedModel([said("ok")]).stream(context, signal)


class GatedStore(InMemorySessionStore):
    """A store whose appends wait for permits, and whose n-th append fails where `failures` says so."""

    def __init__(self, entries: Iterable[SessionEntry] = (), *, permits: int = 1000) -> None:
        super().__init__(entries)
        self.permits = asyncio.Semaphore(permits)
        self.waiting = asyncio.Event()
        self.failures: dict[int, Exception] = {}
        self.attempts = 0

    async def append(self, entry: SessionEntry) -> None:
        """Wait for a permit, then keep the entry or fail."""
        self.attempts += 1
        attempt = self.attempts
        self.waiting.set()
        await self.permits.acquire()
        if attempt in self.failures:
            raise self.failures[attempt]
        await super().append(entry)

    def permit(self, count: int) -> None:
        """Let so many more appends through."""
        for _ in range(count):
            self.permits.release()


class FakeRuntime:
    """All that a mode may know of a runtime: it is prompted, and answers with a result."""

    def __init__(self, messages: list[AgentMessage]) -> None:
        self.result = AgentRunResult("stop", 2, messages)
        self.prompts: list[str] = []

    async def prompt(self, value: str) -> AgentRunResult:
        """Count the prompt and give the result itself."""
        self.prompts.append(value)
        return self.result


class Screen:
    """Takes down what is written, or fails with the error it was given."""

    def __init__(self, error: Exception | None = None) -> None:
        self.written: list[str] = []
        self.error = error

    async def write(self, text: str) -> None:
        """Take the text down, then fail if told so."""
        self.written.append(text)
        if self.error is not None:
            raise self.error


async def workspace(root: Path) -> ResourceCatalog:
    """The catalog of a folder with one rule and one skill that nobody activates."""
    (root / "skills" / "review").mkdir(parents=True)
    (root / "AGENTS.md").write_text("PROJECT RULE\n")
    front = "---\nname: review\ndescription: Review code carefully\n---\n"
    (root / "skills" / "review" / "SKILL.md").write_text(front + "INACTIVE BODY\n")
    return await discover_resources([root])


async def reviewed_tools(steps: list[str]) -> tuple[ToolRegistry, ExtensionHost]:
    """The tool review_note under the extension review-policy; both note in `steps` that they ran."""

    async def review_note(arguments: dict[str, Any], _context: object) -> str:
        steps.append(f"core {arguments['text']}")
        return "noted"

    def before(_call: ToolCall) -> HookDecision:
        steps.append("before")
        return HookDecision("allow")

    def after(result: ToolResultMessage) -> None:
        steps.append(f"after {text_of(result)}")

    def setup(context: Any) -> None:
        context.register_tool(ToolDefinition("review_note", "Keep a note", {"type": "object"}, review_note))
        context.on("before_tool_call", before)
        context.on("after_tool_result", after)

    tools = ToolRegistry()
    host = create_extension_host(tools)
    await load_extension(
        ExtensionSource("review-policy", "review_policy.py"),
        host=host,
        is_trusted=lambda _source: True,
        import_module=lambda _source: SimpleNamespace(setup=setup),
    )
    return tools, host


async def soon(awaitable: Awaitable[T]) -> T:
    """Await with a bound, so that a hang is a failed assertion."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=PATIENCE)
    if not done:
        task.cancel()
    assert done, "nothing came of it in time"
    return task.result()


async def error_of(awaitable: Awaitable[Any]) -> Exception | None:
    """The very error that comes out; a failed assertion and an unfinished lab are not caught."""
    try:
        await soon(awaitable)
    except (AssertionError, NotImplementedError):
        raise
    except Exception as error:  # noqa: BLE001 - the test says which one it has to be
        return error
    return None


async def until(event: asyncio.Event, *tasks: "asyncio.Future[Any]") -> None:
    """Wait for the event; a task that ends before it has its error raised here."""
    waiter = asyncio.ensure_future(event.wait())
    await asyncio.wait({waiter, *tasks}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    for task in tasks:
        if task.done():
            task.result()
    assert event.is_set(), "it never came to that"


async def quiet() -> None:
    """Let everything run that can run without anybody's permit."""
    for _ in range(100):
        await asyncio.sleep(0)


# --- Lab 13.1 ---


@pytest.mark.lab13
@pytest.mark.lab13_1
async def test_only_the_named_leaf_is_restored() -> None:
    """Only an empty session takes a null leaf, and only the messages up to the named leaf are restored."""

    async def restored(entries: list[SessionEntry], leaf_id: str | None) -> list[str]:
        runtime = await composition.create_runtime(config(leaf_id), deps(InMemorySessionStore(entries)))
        return texts(runtime.control.get_state().messages)

    tree = [
        *old_branch(),
        MetadataEntry("note", "old-assistant", 1, {"title": "parser"}),
        kept("next-user", "note", user_message("next", timestamp=1)),
        CompactionEntry("summary", "next-user", 1, "what was said", "next-user"),
        kept("left", "old-user", said("not taken, though it is the last line")),
    ]
    assert await restored([], None) == []
    assert await restored(tree, "old-assistant") == ["继续检查 parser", "我会先看现有实现"]
    assert await restored(tree, "left") == ["继续检查 parser", "not taken, though it is the last line"]
    assert await restored(tree, "summary") == ["继续检查 parser", "我会先看现有实现", "next"]
    for entries, leaf_id in (([], "old-assistant"), (tree, None), (old_branch(), None), (tree, "nowhere")):
        with pytest.raises(SessionTreeError):
            await restored(entries, leaf_id)


@pytest.mark.lab13
@pytest.mark.lab13_1
async def test_the_runtime_owns_its_history_and_keeps_the_given_parts() -> None:
    """The one Agent starts from a deep copy, control can do all but prompt, the parts are the ones given."""
    call = ToolCall("call-0", "read", {"path": ["src", "parser"]})
    result = ToolResultMessage("call-0", "read", [TextContent("code")], False, 2, {"lines": [1, 2]})
    history: list[AgentMessage] = [user_message("look", timestamp=1), said("reading", call), result]
    expected = clone(history)

    def spoil(messages: list[AgentMessage]) -> None:
        messages[0].content[0].text = "changed"
        messages[1].content[1].arguments["path"].append("changed")
        messages[2].details["lines"].append(3)
        messages[2].content.clear()

    live = [kept("a", None, history[0]), kept("b", "a", history[1]), kept("c", "b", history[2])]
    tools = ToolRegistry()
    parts = deps(LiveStore(live), tools=tools, extension_host=create_extension_host(tools))
    runtime = await composition.create_runtime(config("c"), parts)
    spoil(history)
    spoil(runtime.control.get_state().messages)
    assert runtime.control.get_state().messages == expected
    assert runtime.session is parts.session
    assert runtime.resources is parts.resources
    assert runtime.extensions is parts.extension_host
    assert not hasattr(runtime.control, "prompt")
    assert callable(runtime.control.subscribe(print))
    runtime.control.steer("a steer may wait for the first prompt")
    runtime.control.follow_up("so may a follow-up")
    runtime.control.abort("nothing runs")
    assert runtime.control.get_state().running is False

    model = ScriptedModel([said("answer")])
    history = clone(expected)
    restored = agent.Agent(model=model, tools=ToolRegistry(), initial_messages=history)
    spoil(history)
    assert restored.get_state().messages == expected
    outcome = await soon(restored.prompt("next"))
    assert model.requests[0].messages[:3] == outcome.messages[:3] == expected


# --- Lab 13.2 ---


@pytest.mark.lab13
@pytest.mark.lab13_2
async def test_each_request_joins_the_unpersisted_suffix_to_the_latest_path() -> None:
    """Every request reads the path anew, adds what is not persisted, and shares nothing with its input."""
    path = [*old_branch(), MetadataEntry("note", "old-assistant", 1, {"title": "parser"})]
    snapshot = composition.ContextProjectionSnapshot(path, 2)
    inner = KeepingModel()
    model = composition.create_context_projecting_model(
        inner, system_prompt=None, context=budget(), get_snapshot=lambda: snapshot
    )
    signal = AbortController().signal

    async def ask(*messages: AgentMessage) -> list[str]:
        await soon(collect(model.stream(ModelContext(list(messages), None, []), signal)))
        return texts(inner.contexts[-1].messages)

    old = [entry.message for entry in old_branch()]
    now, call = user_message("now"), said("noting", ToolCall("call-1", "review_note", {"text": "x"}))
    done = ToolResultMessage("call-1", "review_note", [TextContent("noted")], False, 3)
    assert await ask(*old, now) == ["继续检查 parser", "我会先看现有实现", "now"]
    assert await ask(*old, now, call, done) == [
        "继续检查 parser",
        "我会先看现有实现",
        "now",
        "noting",
        "noted",
    ]
    assert inner.contexts[-1].messages[2:] == [now, call, done]
    assert path == [*old_branch(), MetadataEntry("note", "old-assistant", 1, {"title": "parser"})]
    sent = clone(inner.contexts[-1].messages)
    now.content[0].text = done.content[0].text = path[0].message.content[0].text = "changed"
    call.content[1].arguments["text"] = "changed"
    assert inner.contexts[-1].messages == sent

    told, last = [user_message("now"), said("ok")], user_message("next")
    longer = [*old_branch(), kept("entry-1", "old-assistant", told[0]), kept("entry-2", "entry-1", told[1])]
    snapshot = composition.ContextProjectionSnapshot(longer, 4)
    assert await ask(*old, *told, last) == ["继续检查 parser", "我会先看现有实现", "now", "ok", "next"]
    for message in inner.contexts[-1].messages:
        message.content[0].text = "changed by the model"
    assert texts([*told, last]) == ["now", "ok", "next"]
    for count in (-1, 4, 1.5):
        snapshot = composition.ContextProjectionSnapshot(old_branch(), count)
        with pytest.raises(ValueError):
            await ask(*old, user_message("now"))
    assert len(inner.contexts) == 3


@pytest.mark.lab13
@pytest.mark.lab13_2
async def test_the_budget_keeps_whole_recent_interactions_after_the_fixed_cost() -> None:
    """System prompt, reserve and margin are paid first; the rest holds whole interactions, newest first."""
    call = ToolCall("call-1", "read", {})
    result = ToolResultMessage("call-1", "read", [TextContent("eeee")], False, 2)
    messages: list[AgentMessage] = [
        *(user_message("aaaa"), said("bbbb")),
        *(user_message("cccc"), said("dd", call), result, said("ff")),
    ]
    path: list[SessionEntry] = []
    for index, message in enumerate(messages):
        path.append(kept(f"m{index}", path[-1].id if path else None, message))

    async def ask(total: int, *suffix: AgentMessage) -> list[str]:
        inner = KeepingModel()
        model = composition.create_context_projecting_model(
            inner,
            system_prompt="SYS",
            context=budget(total, reserved_output=10, safety_margin=5),
            get_snapshot=lambda: composition.ContextProjectionSnapshot(path, len(messages)),
        )
        context = ModelContext([*messages, *suffix], "the projection has the last word", [])
        await soon(collect(model.stream(context, AbortController().signal)))
        assert [context.system_prompt for context in inner.contexts] == ["SYS"]
        return texts(inner.contexts[0].messages)

    fixed, newest = len("SYS") + 10 + 5, user_message("gggg")
    assert await ask(fixed + 4 + 12 + 8, newest) == ["aaaa", "bbbb", "cccc", "dd", "eeee", "ff", "gggg"]
    assert await ask(fixed + 4 + 12 + 7, newest) == ["cccc", "dd", "eeee", "ff", "gggg"]
    assert await ask(fixed + 4 + 12, newest) == ["cccc", "dd", "eeee", "ff", "gggg"]
    assert await ask(fixed + 4 + 11, newest) == ["gggg"]
    assert await ask(fixed + 4, newest) == ["gggg"]
    with pytest.raises(ContextBudgetError):
        await ask(fixed + 3, newest)


@pytest.mark.lab13
@pytest.mark.lab13_2
async def test_tools_are_copied_and_the_signal_is_passed_on() -> None:
    """The inner model gets equal tools that it can't spoil, and the very signal of the request."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [ToolSchema("review_note", "Keep a note", schema), ToolSchema("read", "Read", {"type": "object"})]
    before = clone(tools)
    inner = KeepingModel()
    model = composition.create_context_projecting_model(
        inner,
        system_prompt=None,
        context=budget(),
        get_snapshot=lambda: composition.ContextProjectionSnapshot([], 0),
    )
    controller = AbortController()
    await soon(collect(model.stream(ModelContext([user_message("go")], None, tools), controller.signal)))
    received = inner.contexts[0].tools
    assert received == before
    received[0].parameters["properties"].clear()
    received.pop()
    assert tools == before
    assert inner.signals[0] is controller.signal
    controller.abort("enough")
    assert inner.signals[0].aborted


# --- Lab 13.3 ---


@pytest.mark.lab13
@pytest.mark.lab13_3
async def test_prompts_run_through_all_parts_and_resolve_one_by_one(tmp_path: Path) -> None:
    """Resources and extension serve the Agent, and a prompt resolves once the store has its messages."""
    steps: list[str] = []
    tools, host = await reviewed_tools(steps)
    call = ToolCall("call-1", "review_note", {"text": "ok"})
    model = ScriptedModel([said("记一笔", call), said("结论已记录"), said("没有变化")])
    store = GatedStore(old_branch(), permits=0)
    catalog = await workspace(tmp_path)
    parts = deps(store, model=model, tools=tools, extension_host=host, resources=catalog)
    runtime = await composition.create_runtime(config("old-assistant", system_prompt="BASE SYSTEM"), parts)
    first = asyncio.ensure_future(runtime.prompt("检查 parser 并记录结论"))
    second = asyncio.ensure_future(runtime.prompt("再看一次"))
    await until(store.waiting, first, second)
    await quiet()
    assert steps == ["before", "core ok", "after noted"]
    system_prompt = "BASE SYSTEM\n\n# Pi resources\n\nPROJECT RULE\n\nreview: Review code carefully"
    assert [request.system_prompt for request in model.requests] == [system_prompt] * 2
    assert [schema.name for schema in model.requests[0].tools] == ["review_note"]
    seen = ["继续检查 parser", "我会先看现有实现", "检查 parser 并记录结论"]
    assert texts(model.requests[0].messages) == seen
    assert texts(model.requests[1].messages) == [*seen, "记一笔", "noted"]

    store.permit(3)
    await quiet()
    assert store.attempts == 4, "the fourth append waits for the store"
    assert not first.done()
    assert len(model.requests) == 2, "the second prompt waits for the first"
    store.permit(1)
    await quiet()
    assert first.done(), "the store has all four messages"
    assert not second.done()
    store.permit(100)
    await soon(second)
    seen += ["记一笔", "noted", "结论已记录", "再看一次"]
    assert texts(model.requests[2].messages) == seen
    stored = [*seen, "没有变化"]
    assert texts(entry.message for entry in await store.entries()) == stored
    assert texts(second.result().messages) == stored
    assert texts(first.result().messages) == stored[:6]


@pytest.mark.lab13
@pytest.mark.lab13_3
async def test_only_the_new_suffix_is_appended() -> None:
    """The new messages alone are chained to the leaf; once an append fails, its error is all there is."""
    call = ToolCall("call-1", "nothing", {})
    store = GatedStore(old_branch())
    parts = deps(store, [said("one", call), said("two"), said("three")])
    runtime = await composition.create_runtime(config("old-assistant"), parts)
    result = await soon(runtime.prompt("go"))
    await soon(runtime.prompt("again"))
    added = (await store.entries())[2:]
    assert [entry.message for entry in added[:4]] == result.messages[2:]
    assert texts(entry.message for entry in added[4:]) == ["again", "three"]
    parents = ["old-assistant", "entry-1", "entry-2", "entry-3", "entry-4", "entry-5"]
    assert [entry.parent_id for entry in added] == parents
    assert [entry.id for entry in added] == [*parents[1:], "entry-6"]
    assert [entry.timestamp for entry in added] == [1000, 1001, 1002, 1003, 1004, 1005]
    result.messages[2].content[0].text = "changed"
    assert text_of((await store.entries())[2].message) == "go"
    assert text_of(runtime.control.get_state().messages[2]) == "go"

    disk_error = OSError("no space left")
    store = GatedStore(old_branch(), permits=0)
    store.failures = {2: disk_error}
    model = ScriptedModel([said("answer"), said("not to be asked for"), said("nor this")])
    runtime = await composition.create_runtime(config("old-assistant"), deps(store, model=model))
    running = asyncio.ensure_future(runtime.prompt("go"))
    queued = asyncio.ensure_future(runtime.prompt("queued"))
    await until(store.waiting, running, queued)
    store.permit(100)
    assert await error_of(running) is disk_error
    assert await error_of(queued) is disk_error
    assert await error_of(runtime.prompt("later")) is disk_error
    assert await error_of(runtime.flush()) is disk_error
    assert await error_of(runtime.prompt("last")) is disk_error
    assert len(model.requests) == 1
    assert store.attempts == 2
    assert texts(entry.message for entry in await store.entries()) == [
        "继续检查 parser",
        "我会先看现有实现",
        "go",
    ]


@pytest.mark.lab13
@pytest.mark.lab13_3
async def test_flush_and_dispose_wait_for_what_was_accepted() -> None:
    """Both wait for running and queued prompts, and dispose lets no later one in from the call on."""
    store = GatedStore(permits=0)
    model = ScriptedModel([said("one"), said("two"), said("not to be asked for")])
    runtime = await composition.create_runtime(config(None), deps(store, model=model))
    await soon(runtime.flush())
    running = asyncio.ensure_future(runtime.prompt("running"))
    queued = asyncio.ensure_future(runtime.prompt("queued"))
    await until(store.waiting, running, queued)
    flushed = asyncio.ensure_future(runtime.flush())
    await quiet()
    disposal = runtime.dispose()
    late = asyncio.ensure_future(runtime.prompt("too late"))
    await quiet()
    assert late.done(), "a prompt that comes after dispose() is refused at once"
    with pytest.raises(composition.RuntimeDisposedError):
        late.result()
    disposed = [asyncio.ensure_future(disposal), asyncio.ensure_future(runtime.dispose())]
    await quiet()
    waiting = [flushed, *disposed]
    assert not any(task.done() for task in waiting), "a prompt is being stored"
    store.permit(2)
    await quiet()
    assert running.done()
    assert not any(task.done() for task in waiting), "a prompt was queued before"
    store.permit(100)
    await soon(queued)
    for task in waiting:
        await soon(task)
    await soon(runtime.flush())
    await soon(runtime.dispose())
    with pytest.raises(composition.RuntimeDisposedError):
        await soon(runtime.prompt("still too late"))
    assert texts(entry.message for entry in await store.entries()) == ["running", "one", "queued", "two"]
    assert len(model.requests) == 2


# --- Lab 13.4 ---


@pytest.mark.lab13
@pytest.mark.lab13_4
async def test_modes_differ_only_in_what_they_write() -> None:
    """Each mode prompts once: two write the last assistant's text, json one line; the result is a copy."""
    call = ToolCall("call-1", "review_note", {"text": "ok"})
    noted = ToolResultMessage("call-1", "review_note", [TextContent("noted")], False, 3)
    answer = AssistantMessage([TextContent("结论："), TextContent("通过")], "stop", 4)
    messages: list[AgentMessage] = [user_message("检查", timestamp=1), said("先记一笔", call), noted, answer]
    written: dict[str, list[str]] = {}
    for mode in ("interactive", "print", "json"):
        runtime, screen = FakeRuntime(clone(messages)), Screen()
        result = await soon(composition.run_mode(runtime, mode, "检查", screen))
        assert runtime.prompts == ["检查"]
        assert result == runtime.result == AgentRunResult("stop", 2, messages)
        result.messages[3].content[0].text = "changed"
        result.messages[1].content[1].arguments["text"] = "changed"
        assert runtime.result.messages == messages
        written[mode] = screen.written
    assert written["interactive"] == ["结论：通过"]
    assert written["print"] == ["结论：通过"]
    (line,) = written["json"]
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    wire = [message_to_json(message) for message in messages]
    assert json.loads(line) == {"reason": "stop", "steps": 2, "messages": wire}
    silent, screen = FakeRuntime([user_message("检查")]), Screen()
    await soon(composition.run_mode(silent, "print", "检查", screen))
    assert screen.written == [""]


@pytest.mark.lab13
@pytest.mark.lab13_4
async def test_a_mode_fails_before_the_prompt_or_with_the_output_error() -> None:
    """An unknown mode never prompts, and what the output raises comes out as it is."""
    for mode in ("", "JSON", "quiet"):
        runtime, screen = FakeRuntime([user_message("go"), said("done")]), Screen()
        with pytest.raises(ValueError):
            await soon(composition.run_mode(runtime, mode, "go", screen))
        assert runtime.prompts == []
        assert screen.written == []
    for mode in ("interactive", "print", "json"):
        closed = BrokenPipeError("nobody reads")
        runtime, screen = FakeRuntime([user_message("go"), said("done")]), Screen(closed)
        assert await error_of(composition.run_mode(runtime, mode, "go", screen)) is closed
        assert runtime.prompts == ["go"]
        assert len(screen.written) == 1
