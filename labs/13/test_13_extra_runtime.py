"""Chapter 13, hardening: what a runtime owes its callers under asyncio's own rules."""

import asyncio
import gc
import inspect
import traceback
import weakref
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pi_course import composition
from pi_course.events import MessageEnd
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    UserMessage,
    text_of,
    user_message,
)
from pi_course.model import ModelContext, ModelEvent, ScriptedModel
from pi_course.resources import (
    ResourceCatalog,
)
from pi_course.schema import ToolDefinition
from pi_course.session import (
    InMemorySessionStore,
    JsonlSessionStore,
    MessageEntry,
    SessionEntry,
)
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry

pytestmark = pytest.mark.extra13

T = TypeVar("T")
PATIENCE = 10.0  # seconds: how long a test waits before it calls a hang a failure
caller: ContextVar[str] = ContextVar("caller", default="nobody")


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


async def quiet() -> None:
    """Let everything run that can run by itself."""
    for _ in range(200):
        await asyncio.sleep(0)


def others() -> set["asyncio.Task[Any]"]:
    """The tasks that run beside this one."""
    return asyncio.all_tasks() - {asyncio.current_task()}


# --- one queue ---


async def test_fifty_prompts_are_stored_one_after_the_other() -> None:
    """`gather` of many prompts gives each its own result, and the store one chain in order."""
    store, running, most = Store(), 0, 0

    async def slowly(context: ModelContext) -> AssistantMessage:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return echo(context)

    runtime = await made(store, ScriptedModel([slowly] * 50))
    results = await soon(asyncio.gather(*(runtime.prompt(f"p{n}") for n in range(50))))
    assert most == 1
    assert [len(result.messages) for result in results] == list(range(2, 102, 2))
    assert [text_of(result.messages[-1]) for result in results] == [f"re: p{n}" for n in range(50)]
    entries = await store.entries()
    assert [entry.id for entry in entries] == [f"entry-{n}" for n in range(1, 101)]
    assert [entry.parent_id for entry in entries] == [None, *(f"entry-{n}" for n in range(1, 100))]
    assert not others()


async def test_prompts_are_accepted_when_their_coroutines_first_run() -> None:
    """Order and acceptance go by the first step of the coroutine, not by the call."""
    store = Store()
    runtime = await made(store)
    called_first, called_second = runtime.prompt("called first"), runtime.prompt("called second")
    second = asyncio.ensure_future(called_second)
    await asyncio.sleep(0)
    first = asyncio.ensure_future(called_first)
    await soon(asyncio.gather(first, second))
    assert (await store.said())[0::2] == ["called second", "called first"]
    never = runtime.prompt("called before, run after")
    disposed = runtime.dispose()
    assert isinstance(await error_of(never), composition.RuntimeDisposedError)
    await soon(disposed)
    assert len(await store.entries()) == 4


async def test_a_cancelled_caller_takes_its_wait_and_nothing_else() -> None:
    """Running or still queued, an accepted prompt is run, stored and followed by the next."""
    store = Store(closed=True)
    model = Echo()
    runtime = await made(store, model)
    tasks = [asyncio.ensure_future(runtime.prompt(text)) for text in ("running", "queued", "last")]
    await soon(store.waiting.wait())
    await quiet()
    for task in tasks[:2]:
        task.cancel()
        assert isinstance(await error_of(task), asyncio.CancelledError)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(runtime.prompt("timed out"), 0.01)
    flushing = asyncio.ensure_future(runtime.flush())
    disposing = asyncio.ensure_future(runtime.dispose())
    await quiet()
    flushing.cancel()
    disposing.cancel()
    await quiet()
    assert flushing.cancelled()
    assert disposing.cancelled()
    store.gate.set()
    await soon(tasks[2])
    await soon(runtime.dispose())
    assert (await store.said())[0::2] == ["running", "queued", "last", "timed out"]
    assert model.requests == 4
    assert not others()


async def test_a_caller_cancelled_inside_the_model_does_not_abort_the_run() -> None:
    """The run neither ends nor is aborted; `control.abort()` is what stops one, and the queue goes on."""
    store, entered, go = Store(), asyncio.Event(), asyncio.Event()

    async def waiting(context: ModelContext) -> AssistantMessage:
        entered.set()
        await go.wait()
        return echo(context)

    model = ScriptedModel([waiting, waiting, echo])
    runtime = await made(store, model)
    first = asyncio.ensure_future(runtime.prompt("first"))
    await soon(entered.wait())
    first.cancel()
    await quiet()
    assert first.cancelled()
    assert not model.signals[0].aborted
    go.set()
    await soon(runtime.flush())
    assert await store.said() == ["first", "re: first"]
    entered.clear()
    go.clear()
    second, third = (asyncio.ensure_future(runtime.prompt(text)) for text in ("second", "third"))
    await soon(entered.wait())
    runtime.control.abort("enough")
    assert model.signals[1].reason == "enough"
    assert (await soon(second)).reason == "aborted"
    assert (await soon(third)).reason == "stop"
    assert (await store.said())[2::2] == ["second", "third"]


async def test_every_prompt_runs_in_the_context_of_its_caller() -> None:
    """A context variable reads in model and store as it stood where the prompt was accepted."""
    store, seen = Store(closed=True), []

    def note(context: ModelContext) -> AssistantMessage:
        seen.append(caller.get())
        return said("ok")

    async def ask(name: str) -> None:
        caller.set(name)
        await runtime.prompt(name)
        caller.set("somebody else")

    runtime = await made(store, ScriptedModel([note] * 3))
    tasks = [asyncio.ensure_future(ask(name)) for name in ("ann", "bob", "cyd")]
    await soon(store.waiting.wait())
    store.gate.set()
    await soon(asyncio.gather(*tasks))
    assert seen == ["ann", "bob", "cyd"]


async def test_what_is_accepted_can_no_longer_be_changed() -> None:
    """A queued message is copied at the door, a result shares nothing with runtime or store."""
    store, model = Store(closed=True), ScriptedModel([said("one"), said("two"), said("three")])
    runtime = await made(store, model)
    message = UserMessage([TextContent("as it "), TextContent("was")], 7)
    first, second = asyncio.ensure_future(runtime.prompt("x")), asyncio.ensure_future(runtime.prompt(message))
    await soon(store.waiting.wait())
    message.content[0].text = "changed"
    message.content.pop()
    store.gate.set()
    for result in (await soon(first), await soon(second)):
        for part in result.messages:
            part.content[0].text = "changed"
        result.messages.clear()
    await soon(runtime.prompt("y"))
    assert texts(model.requests[2].messages) == ["x", "one", "as it was", "two", "y"]
    assert (await store.entries())[2].message.timestamp == 7
    assert await store.said() == ["x", "one", "as it was", "two", "y", "three"]


@pytest.mark.parametrize(
    "value", [7, None, b"text", said("not a user"), UserMessage("text", 1), UserMessage([], "now")]
)
async def test_what_is_no_prompt_is_refused_at_the_door(value: Any) -> None:
    """It raises TypeError or ValueError at once, and neither ends nor touches the runtime."""
    store, model = Store(), Echo()
    runtime = await made(store, model)
    assert isinstance(await error_of(runtime.prompt(value)), TypeError | ValueError)
    assert model.requests == 0
    assert store.attempts == 0
    await soon(runtime.prompt("text"))
    assert await store.said() == ["text", "re: text"]


async def test_a_store_that_keeps_what_it_is_given_cannot_change_the_runtime() -> None:
    """Entries handed to the store, and entries it hands out, are nobody else's."""

    class Careless:
        def __init__(self) -> None:
            self.live = old_branch()

        async def entries(self) -> list[SessionEntry]:
            return self.live

        async def append(self, entry: SessionEntry) -> None:
            entry.id = entry.parent_id = "scribbled over"
            entry.message.content[0].text = "scribbled over"
            self.live.append(entry)

    store, model = Careless(), ScriptedModel([said("one"), said("two")])
    runtime = await made(store, model, leaf_id="old-assistant")
    for entry in store.live:
        entry.message.content[0].text = "scribbled over"
    result = await soon(runtime.prompt("first"))
    assert texts(result.messages) == ["old question", "old answer", "first", "one"]
    await soon(runtime.prompt("second"))
    assert texts(model.requests[1].messages) == ["old question", "old answer", "first", "one", "second"]
    assert texts(runtime.control.get_state().messages)[2:] == ["first", "one", "second", "two"]


# --- what fails, and what that ends ---


async def test_a_failing_model_does_not_end_the_runtime() -> None:
    """Its closing message is stored like any other, and the next prompt runs."""
    store = Store()
    runtime = await made(store, ScriptedModel([ConnectionError("no route"), said("back again")]))
    result = await soon(runtime.prompt("one"))
    assert result.reason == "error"
    assert await store.said() == ["one", ""]
    assert (await store.entries())[1].message == result.messages[1]
    await soon(runtime.prompt("two"))
    await soon(runtime.flush())
    assert await store.said() == ["one", "", "two", "back again"]


class Odd(BaseException):
    """An error that is no Exception."""


@pytest.mark.parametrize(
    "failure",
    [
        OSError(28),
        ValueError("x"),
        asyncio.CancelledError("store"),
        Odd(),
        SystemExit(3),
        KeyboardInterrupt(),
    ],
)
async def test_whatever_the_store_raises_comes_out_as_it_is(failure: BaseException) -> None:
    """The same object, from the running prompt, the queued, every later one and flush; no task dies of it."""
    store, model = Store(closed=True), Echo()
    runtime = await made(store, model)

    async def outcome(text: str) -> BaseException | None:
        return await error_of(runtime.prompt(text))

    tasks = [asyncio.ensure_future(outcome(text)) for text in ("running", "queued", "queued too")]
    await soon(store.waiting.wait())
    store.failure = failure
    store.gate.set()
    for task in tasks:
        assert await soon(task) is failure
    assert await error_of(runtime.prompt("later")) is failure
    assert await error_of(runtime.flush()) is failure
    await soon(runtime.dispose())
    assert isinstance(await error_of(runtime.prompt("disposed")), composition.RuntimeDisposedError)
    assert await error_of(runtime.flush()) is failure
    assert failure.__cause__ is None
    assert (model.requests, store.attempts) == (1, 1)
    assert not others()


@pytest.mark.parametrize("part", ["create_id", "now"])
@pytest.mark.parametrize("failure", [KeyError("x"), StopIteration()])
async def test_ids_and_clock_are_part_of_persisting(part: str, failure: Exception) -> None:
    """What they raise ends the runtime too; StopIteration, which coroutines turn, as RuntimeError."""
    calls = 0

    def failing() -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise failure
        return "one" if part == "create_id" else 1

    store, model = Store(), Echo()
    runtime = await made(store, model, **{part: failing})
    first = await error_of(runtime.prompt("go"))
    if isinstance(failure, StopIteration):
        assert isinstance(first, RuntimeError)
    else:
        assert first is failure
    assert await error_of(runtime.prompt("again")) is first
    assert await error_of(runtime.flush()) is first
    assert (model.requests, store.attempts, calls) == (1, 1, 2)


async def test_a_half_finished_append_is_not_retried_and_not_counted() -> None:
    """The entry may be in the store and still the append failed: nothing is tried again."""

    class Half(Store):
        async def append(self, entry: SessionEntry) -> None:
            await super().append(entry)
            raise OSError("written, but not confirmed")

    store, model = Half(), Echo()
    runtime = await made(store, model)
    failure = await error_of(runtime.prompt("one"))
    assert await error_of(runtime.prompt("two")) is failure
    assert await store.said() == ["one"]
    assert (model.requests, store.attempts) == (1, 1)
    assert texts(runtime.control.get_state().messages) == ["one", "re: one"]
    resumed = await made(store, model, leaf_id="entry-1")
    assert texts(resumed.control.get_state().messages) == ["one"]


async def test_the_error_keeps_the_way_it_came() -> None:
    """Whoever gets it, and however late, its traceback still leads into the store."""
    store = Store()
    store.failure = OSError("full")
    runtime = await made(store)
    tasks = [asyncio.ensure_future(error_of(runtime.prompt(text))) for text in ("running", "queued")]
    for awaitable in (*tasks, error_of(runtime.prompt("later")), error_of(runtime.flush())):
        error = await soon(awaitable)
        assert error is store.failure
        assert traceback.extract_tb(error.__traceback__)[-1].name == "append"


async def test_a_thousand_prompts_behind_a_failure_get_its_error_and_nothing_grows() -> None:
    """All get the one object, without recursion, without a growing traceback, without a loose task."""
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))
    store, model = Store(closed=True), Echo()
    runtime = await made(store, model)
    tasks = [asyncio.ensure_future(runtime.prompt(str(n))) for n in range(2000)]
    await soon(store.waiting.wait())
    abandoned = tasks[1000:1100]
    for task in abandoned:
        task.cancel()
    store.failure = OSError("full")
    store.gate.set()
    errors = await soon(asyncio.gather(*tasks, return_exceptions=True))
    assert all(error is store.failure for error in errors[:1000] + errors[1100:])
    depths = set()
    for _ in range(100):
        assert await error_of(runtime.prompt("later")) is store.failure
        depths.add(len(traceback.extract_tb(store.failure.__traceback__)))
    assert max(depths) < 30
    assert len(depths) == 1
    assert (model.requests, store.attempts) == (1, 1)
    del tasks, abandoned, errors, task
    gc.collect()
    await quiet()
    assert reports == []
    assert not others()


# --- flush, dispose, the end ---


async def test_flush_waits_for_what_was_accepted_before_and_starts_nothing() -> None:
    """It makes no task, and does not wait for prompts that come after it."""
    store = Store(closed=True)
    runtime = await made(store)
    assert await error_of(runtime.flush()) is None
    first = asyncio.ensure_future(runtime.prompt("first"))
    await soon(store.waiting.wait())
    before = others()
    flushed = asyncio.ensure_future(runtime.flush())
    await quiet()
    assert others() == before | {flushed}
    blocked, go = asyncio.Event(), store.gate
    store.gate = blocked
    second = asyncio.ensure_future(runtime.prompt("second"))
    await quiet()
    go.set()
    store.gate = go
    await soon(first)
    store.gate = blocked
    await soon(flushed)
    assert not second.done()
    blocked.set()
    await soon(second)


async def test_dispose_closes_at_the_call_and_need_not_be_awaited() -> None:
    """It is a plain function: the entry is shut at once, in or out of a task, and nothing warns of it."""
    runtime = await made(Store())
    assert not inspect.iscoroutinefunction(runtime.dispose)
    runtime.dispose()
    gc.collect()
    assert isinstance(await error_of(runtime.prompt("x")), composition.RuntimeDisposedError)
    await soon(runtime.dispose())
    again = runtime.dispose()
    for _ in range(3):
        await again
    await soon(runtime.flush())


async def test_dispose_by_many_tasks_survives_the_cancelling_of_one() -> None:
    """All wait for the same end; one that is cancelled takes none of the others along."""
    store = Store(closed=True)
    runtime = await made(store)
    prompting = asyncio.ensure_future(runtime.prompt("x"))
    await soon(store.waiting.wait())
    shared = runtime.dispose()
    tasks = [asyncio.ensure_future(awaitable) for awaitable in (shared, runtime.dispose(), runtime.dispose())]

    async def wait_for_shared() -> None:
        await shared

    tasks.append(asyncio.ensure_future(wait_for_shared()))
    await quiet()
    tasks[0].cancel()
    await quiet()
    assert [task.done() for task in tasks] == [True, False, False, False]
    store.gate.set()
    await soon(asyncio.gather(*tasks[1:]))
    assert (await soon(prompting)).reason == "stop"
    await shared
    assert not others()


async def test_listeners_may_raise_and_dispose() -> None:
    """What a listener raises breaks no run; one that disposes lets the run it watches go to its end."""
    store, seen = Store(), []
    runtime = await made(store)

    def disposing(event: Any) -> None:
        seen.append(event)
        runtime.dispose()
        raise LookupError("a listener's own trouble")

    unsubscribe = runtime.control.subscribe(disposing)
    await soon(runtime.prompt("x"))
    assert await store.said() == ["x", "re: x"]
    assert [text_of(event.message) for event in seen if isinstance(event, MessageEnd)] == ["x", "re: x"]
    unsubscribe()
    assert isinstance(await error_of(runtime.prompt("y")), composition.RuntimeDisposedError)


async def test_steers_and_follow_ups_belong_to_the_suffix() -> None:
    """What is said through control during a run is stored with that run, in its place."""
    store = Store()
    tools = ToolRegistry()

    async def interrupted(_arguments: dict[str, Any], _context: object) -> str:
        runtime.control.steer("steered")
        runtime.control.follow_up("followed up")
        return "done"

    tools.register(ToolDefinition("work", "Work", {"type": "object"}, interrupted))
    model = ScriptedModel([said("", ToolCall("c", "work", {})), echo, echo, echo])
    runtime = await made(store, model, tools=tools)
    await soon(runtime.prompt("go"))
    steered = ["go", "", "done", "steered", "re: steered", "followed up", "re: followed up"]
    assert await store.said() == steered
    await soon(runtime.prompt("next"))
    assert await store.said() == [*steered, "next", "re: next"]
    assert runtime.control.get_state().running is False


async def test_a_dropped_runtime_is_collected_but_finishes_what_it_accepted() -> None:
    """Nothing keeps an idle runtime alive, and nothing but the accepted prompt a busy one."""
    runtime = await made(Store())
    await soon(runtime.prompt("x"))
    await soon(runtime.dispose())
    gone = weakref.ref(runtime)
    del runtime
    gc.collect()
    assert gone() is None
    store = Store(closed=True)
    runtime = await made(store)
    task = asyncio.ensure_future(runtime.prompt("busy"))
    await soon(store.waiting.wait())
    task.cancel()
    await quiet()
    del runtime, task
    gc.collect()
    store.gate.set()
    await quiet()
    assert await store.said() == ["busy", "re: busy"]
    assert not others()


def test_a_runtime_outlives_the_event_loop_it_was_idle_in() -> None:
    """An idle runtime is bound to no loop; dispose can be called where none runs."""
    store = InMemorySessionStore()
    runtime = asyncio.run(made(store))
    for text in ("one", "two"):
        result = asyncio.run(runtime.prompt(text))
        asyncio.run(runtime.flush())
    assert texts(result.messages) == ["one", "re: one", "two", "re: two"]
    disposed = runtime.dispose()

    async def late() -> BaseException | None:
        await disposed
        return await error_of(runtime.prompt("x"))

    assert isinstance(asyncio.run(late()), composition.RuntimeDisposedError)


def test_a_loop_that_shuts_down_cuts_the_runtime_off() -> None:
    """Whether in the model or in the store, a prompt cut off is no success: every later call says so."""

    async def never(_context: ModelContext) -> AssistantMessage:
        await asyncio.Event().wait()
        raise AssertionError

    class NeverStore(InMemorySessionStore):
        async def append(self, entry: SessionEntry) -> None:
            await asyncio.Event().wait()

    for store, model in (
        (InMemorySessionStore(), ScriptedModel([never] * 3)),
        (NeverStore(), ScriptedModel([said("x")] * 3)),
    ):

        async def leave_behind(store: Any = store, model: Any = model) -> Any:
            runtime = await made(store, model)
            for text in ("running", "queued"):
                asyncio.ensure_future(error_of(runtime.prompt(text)))  # noqa: RUF006 - left behind on purpose
            await quiet()
            return runtime

        async def look(runtime: Any) -> list[BaseException | None]:
            errors = [await error_of(runtime.prompt("x")), await error_of(runtime.flush())]
            await soon(runtime.dispose())
            return errors

        runtime = asyncio.run(leave_behind())
        first, second = asyncio.run(look(runtime))
        assert first is second
        assert isinstance(first, RuntimeError)
        assert len(model.requests) == 1


@pytest.mark.parametrize("stage", ["before its first step", "in the model", "in the store"])
async def test_tasks_cancelled_from_outside_leave_nobody_waiting(stage: str) -> None:
    """Where a program cancels all tasks and goes on, every prompt is told, and none runs any more."""
    entered = asyncio.Event()

    async def never(_context: ModelContext) -> AssistantMessage:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    store = Store(closed=True)
    model = ScriptedModel([never if stage == "in the model" else said("x")] * 5)
    runtime = await made(store, model)
    callers = [asyncio.ensure_future(error_of(runtime.prompt(text))) for text in ("running", "queued")]
    await asyncio.sleep(0)
    if stage != "before its first step":
        await soon(entered.wait() if stage == "in the model" else store.waiting.wait())
        await quiet()
    requests = len(model.requests)
    for task in others() - set(callers):
        task.cancel()
    errors = [await soon(task) for task in callers]
    assert len(set(map(id, errors))) == 1
    assert isinstance(errors[0], RuntimeError)
    assert await error_of(runtime.prompt("later")) is errors[0]
    assert await error_of(runtime.flush()) is errors[0]
    await soon(runtime.dispose())
    assert len(model.requests) == requests
    assert await store.said() == []
    assert not others()


def test_a_loop_closed_under_a_prompt_leaves_nobody_waiting() -> None:
    """A prompt whose loop was closed can never end; later calls fail instead of hanging behind it."""

    async def never(_context: ModelContext) -> AssistantMessage:
        await asyncio.Event().wait()
        raise AssertionError

    loop = asyncio.new_event_loop()
    runtime = loop.run_until_complete(made(InMemorySessionStore(), ScriptedModel([never])))
    loop.set_exception_handler(lambda _loop, _context: None)
    task = loop.create_task(error_of(runtime.prompt("stranded")))
    loop.run_until_complete(quiet())
    loop.close()

    async def look() -> list[BaseException | None]:
        errors = [await error_of(runtime.flush()), await error_of(runtime.prompt("x"))]
        await soon(runtime.dispose())
        return errors

    first, second = asyncio.run(look())
    assert first is second
    assert isinstance(first, RuntimeError)
    assert not task.done()


async def test_a_jsonl_session_is_resumed_from_the_last_entry(tmp_path: Path) -> None:
    """What one runtime has stored, the next one restores, message by message."""
    path = tmp_path / "session.jsonl"
    call = ToolCall("c", "nothing", {"deep": [{"a": None}]})
    runtime = await made(JsonlSessionStore(path), ScriptedModel([said("one", call), said("two")]))
    result = await soon(runtime.prompt("go"))
    await soon(runtime.dispose())
    ids = iter(("entry-5", "entry-6"))
    resumed = await made(JsonlSessionStore(path), leaf_id="entry-4", create_id=lambda: next(ids))
    assert resumed.control.get_state().messages == result.messages
    await soon(resumed.prompt("on"))
    entries = await JsonlSessionStore(path).entries()
    assert [entry.id for entry in entries] == [f"entry-{n}" for n in range(1, 7)]
    assert [entry.parent_id for entry in entries] == [None, *(f"entry-{n}" for n in range(1, 6))]
