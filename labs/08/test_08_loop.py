"""Chapter 08: one run of the loop, with a model, a tool executor and nothing else."""

import asyncio
import contextvars
import gc
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pi_course import loop
from pi_course.events import AgentEvent, AgentRunResult, MessageUpdate
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
    user_message,
)
from pi_course.model import (
    MessageDone,
    ModelContext,
    ModelEvent,
    ScriptedModel,
    TextDelta,
    ToolCallDelta,
    ToolSchema,
)
from pi_course.schema import ToolContext
from pi_course.signals import AbortSignal

SCHEMA = ToolSchema("echo", "Give back its argument.", {"type": "object"})


def says(
    text: str, *calls: ToolCall, stop_reason: Any = "stop", error: str | None = None
) -> AssistantMessage:
    """An assistant message of text and calls."""
    content: list[TextContent | ToolCall] = [TextContent(text)] if text else []
    return AssistantMessage(content + list(calls), stop_reason, 7, error)


def call(call_id: str, **arguments: Any) -> ToolCall:
    """A call of the tool `echo`."""
    return ToolCall(call_id, "echo", arguments)


def result_of(asked: ToolCall, text: str = "ok", *, is_error: bool = False) -> ToolResultMessage:
    """The result that pairs a call."""
    return ToolResultMessage(asked.id, asked.name, [TextContent(text)], is_error, 8)


async def echo(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
    """An executor that always has a result."""
    return result_of(asked, f"echo {asked.id}")


class Streams:
    """A model whose replies are asynchronous generator functions of context and signal."""

    def __init__(self, *replies: Callable[[ModelContext, AbortSignal], Any]) -> None:
        self.replies = deque(replies)

    def stream(self, context: ModelContext, signal: AbortSignal) -> Any:
        """Play the next reply."""
        return self.replies.popleft()(context, signal)


class Bench:
    """A run with everything that it needs, and a record of what happened."""

    def __init__(self, model: Any, execute: Any = echo, *, max_steps: int = 16) -> None:
        self.events: list[AgentEvent] = []
        self.watch: Callable[[AgentEvent], None] = lambda event: None
        self.transcript: list[AgentMessage] = []
        self.control = loop.RunControl()
        self.noise: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.noise.append(context))
        self.setup = loop.LoopSetup(
            model=model,
            execute=execute,
            schemas=lambda: [SCHEMA],
            system_prompt="SYSTEM",
            max_steps=max_steps,
            emit=self.emit,
            steers=deque(),
            follow_ups=deque(),
        )

    def emit(self, event: AgentEvent) -> None:
        """Keep the event and show it to whoever watches."""
        self.events.append(event)
        self.watch(event)

    async def run(self, text: str = "hello") -> AgentRunResult:
        """Run once, in bounded time."""
        prompt = user_message(text, timestamp=1)
        return await soon(loop.run_agent_loop(self.setup, self.transcript, prompt, self.control))

    def trace(self) -> list[str]:
        """The events' kinds, and what tells those of a kind apart."""
        return [shown(event) for event in self.events]

    def results(self) -> list[ToolResultMessage]:
        """All tool results of the transcript."""
        return [message for message in self.transcript if isinstance(message, ToolResultMessage)]

    def last(self) -> AssistantMessage:
        """The last message, which has to be the assistant's."""
        message = self.transcript[-1]
        assert isinstance(message, AssistantMessage)
        return message


def shown(event: AgentEvent) -> str:
    """A short form of an event."""
    kind = type(event).__name__
    for name in ("step", "call_id"):
        if hasattr(event, name):
            return f"{kind} {getattr(event, name)}"
    if hasattr(event, "call"):
        return f"{kind} {event.call.id}"
    return f"{kind} {event.message.role}" if hasattr(event, "message") else kind


async def soon(work: Awaitable[Any]) -> Any:
    """Await something that may not take long: a hang is a failed assertion."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=20)
    assert done, "still waiting after 20 seconds"
    return task.result()


async def test_run_without_tools_has_one_turn() -> None:
    """A reply without calls ends the run after one request, its events in the documented order."""
    bench = Bench(ScriptedModel([says("hi")]))
    result = await bench.run()
    assert bench.trace() == [
        "AgentStart",
        "TurnStart 1",
        "MessageEnd user",
        "MessageUpdate",
        "MessageEnd assistant",
        "TurnEnd 1",
        "AgentEnd",
    ]
    assert (result.reason, result.steps) == ("stop", 1)
    assert result.messages == [user_message("hello", timestamp=1), says("hi")] == bench.transcript


async def test_tools_run_one_after_another_and_their_results_follow() -> None:
    """A turn's calls run in order, each done before the next begins, and each result joins right after."""
    running: list[str] = []

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        assert not running
        running.append(asked.id)
        await asyncio.sleep(0.001)
        running.remove(asked.id)
        return result_of(asked)

    bench = Bench(
        ScriptedModel([says("", call("a"), call("b"), stop_reason="toolUse"), says("done")]), execute
    )
    result = await bench.run()
    assert bench.trace()[3:-4] == [
        "MessageUpdate",
        "MessageUpdate",
        "MessageEnd assistant",
        "ToolStart a",
        "ToolEnd a",
        "MessageEnd toolResult",
        "ToolStart b",
        "ToolEnd b",
        "MessageEnd toolResult",
        "TurnEnd 1",
        "TurnStart 2",
    ]
    assert [message.role for message in result.messages] == [
        "user",
        "assistant",
        "toolResult",
        "toolResult",
        "assistant",
    ]
    assert (result.reason, result.steps) == ("stop", 2)


async def test_each_request_shows_the_whole_transcript() -> None:
    """A request has all messages so far, the system prompt and the tools' schemas."""
    model = ScriptedModel([says("", call("a")), says("done")])
    bench = Bench(model)
    result = await bench.run()
    assert [len(request.messages) for request in model.requests] == [1, 3]
    assert model.requests[1].messages == result.messages[:3]
    assert all(request.system_prompt == "SYSTEM" for request in model.requests)
    assert all(request.tools == [SCHEMA] for request in model.requests)
    assert model.signals == [bench.control.signal] * 2


@pytest.mark.parametrize("stop_reason", ["stop", "toolUse", "length"])
async def test_calls_and_not_the_stop_reason_keep_a_run_going(stop_reason: str) -> None:
    """A turn goes on while the message holds calls; one without calls ends the run with reason "stop"."""
    first = says("", call("a"), stop_reason=stop_reason)
    bench = Bench(ScriptedModel([first, says("cut", stop_reason=stop_reason)]))
    result = await bench.run()
    assert (result.reason, result.steps, len(bench.results())) == ("stop", 2, 1)
    assert bench.last().stop_reason == stop_reason


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
async def test_message_that_arrives_failed_ends_the_run(stop_reason: Any) -> None:
    """A message of the model with "error" or "aborted" joins as it is; its calls are answered, not run."""
    message = says("so far", call("a"), call("b"), stop_reason=stop_reason, error="overloaded")
    bench = Bench(ScriptedModel([message, says("never")]))
    result = await bench.run()
    assert (result.reason, result.steps) == (stop_reason, 1)
    assert result.messages[1] == message
    assert [(each.tool_call_id, each.is_error) for each in bench.results()] == [("a", True), ("b", True)]
    assert not [line for line in bench.trace() if line.startswith("Tool")]


async def test_last_step_still_runs_its_calls() -> None:
    """`max_steps` bounds the requests: the calls of the last one run, then the run ends with that reason."""
    bench = Bench(ScriptedModel([says("", call("a")), says("", call("b")), says("never")]), max_steps=2)
    result = await bench.run()
    assert (result.reason, result.steps) == ("max_steps", 2)
    assert [text_of(each) for each in bench.results()] == ["echo a", "echo b"]
    assert bench.trace()[-2:] == ["TurnEnd 2", "AgentEnd"]


async def raises(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
    """Fail after some text and a call."""
    yield TextDelta("so ")
    yield ToolCallDelta(call("a"))
    yield TextDelta("far")
    raise ConnectionError("line dropped")


async def yields_nothing(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
    """End at once."""
    return
    yield


async def goes_on(context: ModelContext, signal: AbortSignal) -> AsyncIterator[Any]:
    """Say more after the end."""
    yield MessageDone(says("done", call("a")))
    yield TextDelta("more")


async def cancels_itself(context: ModelContext, signal: AbortSignal) -> AsyncIterator[Any]:
    """Raise a cancellation that nobody asked for."""
    yield TextDelta("so far")
    raise asyncio.CancelledError


async def exits(context: ModelContext, signal: AbortSignal) -> AsyncIterator[Any]:
    """Raise something that is no Exception."""
    yield TextDelta("so far")
    raise GeneratorExit


async def refuses_to_close(context: ModelContext, signal: AbortSignal) -> AsyncIterator[Any]:
    """Yield while being closed."""
    try:
        yield "junk"
    finally:
        yield TextDelta("never heard")


async def a_coroutine(context: ModelContext, signal: AbortSignal) -> Any:
    """What `async def stream` without a yield is."""
    return None


def yielding(*events: Any) -> Callable[..., Any]:
    """A reply that yields these events."""

    async def reply(context: ModelContext, signal: AbortSignal) -> AsyncIterator[Any]:
        for event in events:
            yield event

    return reply


JUNK = [
    raises,
    yields_nothing,
    goes_on,
    cancels_itself,
    exits,
    refuses_to_close,
    a_coroutine,
    lambda context, signal: None,
    lambda context, signal: [MessageDone(says("a list"))],
    lambda context, signal: 1 / 0,
    yielding("junk"),
    yielding(None, MessageDone(says("late"))),
    yielding(TextDelta(7), MessageDone(says("x"))),  # type: ignore[arg-type]
    yielding(ToolCallDelta(object()), MessageDone(says("x"))),  # type: ignore[arg-type]
    yielding(MessageDone("text")),  # type: ignore[arg-type]
    yielding(MessageDone(user_message("not mine"))),  # type: ignore[arg-type]
    yielding(MessageDone(says("odd", stop_reason="sleepy"))),
    yielding(MessageDone(AssistantMessage("text", "stop", 1))),  # type: ignore[arg-type]
    yielding(MessageDone(AssistantMessage([ToolCall("a", "echo", {1: 2})], "stop", 1))),  # type: ignore[dict-item]
    yielding(MessageDone(says("a")), MessageDone(says("b"))),
]


@pytest.mark.parametrize("reply", JUNK)
async def test_failing_model_closes_the_turn_with_an_error(reply: Any) -> None:
    """Whatever a model raises or yields: one closing "error" with the text so far and why, without calls."""
    bench = Bench(Streams(reply))
    result = await bench.run()
    assert (result.reason, result.steps, len(result.messages)) == ("error", 1, 2)
    assert bench.last().stop_reason == "error"
    assert bench.last().error_message
    assert tool_calls_of(bench.last()) == []
    assert bench.trace()[-3:] == ["MessageEnd assistant", "TurnEnd 1", "AgentEnd"]
    if reply is raises:
        assert text_of(bench.last()) == "so far"
        assert "line dropped" in bench.last().error_message
    gc.collect()
    await asyncio.sleep(0)
    assert bench.noise == []


def refusing(what: Any) -> Any:
    """An executor that raises this, or gives it back."""

    async def execute(asked: ToolCall, context: ToolContext) -> Any:
        if isinstance(what, BaseException):
            raise what
        return what(asked) if callable(what) else what

    return execute


class Unprintable(Exception):
    """An error whose text fails, too."""

    def __str__(self) -> str:
        raise ValueError("no text")


BAD_EXECUTORS = [
    refusing(RuntimeError("broken")),
    refusing(asyncio.CancelledError()),
    refusing(TimeoutError()),
    refusing(GeneratorExit()),
    refusing(Unprintable()),
    refusing(None),
    refusing("text"),
    refusing(lambda asked: says("not a result")),
    refusing(lambda asked: ToolResultMessage("other", asked.name, [], False, 1)),
    refusing(lambda asked: ToolResultMessage(asked.id, "other", [], False, 1)),
    refusing(lambda asked: ToolResultMessage(asked.id, asked.name, "text", False, 1)),  # type: ignore[arg-type]
    refusing(lambda asked: ToolResultMessage(asked.id, asked.name, [], False, 1, object())),  # type: ignore[arg-type]
    lambda asked, context: None,
    lambda asked, context: 1 / 0,
]


@pytest.mark.parametrize("execute", BAD_EXECUTORS)
async def test_executor_that_fails_gives_a_paired_error_result(execute: Any) -> None:
    """Whatever an executor raises or gives back, the call has one error result and the run goes on."""
    bench = Bench(ScriptedModel([says("", call("a")), says("done")]), execute)
    result = await bench.run()
    assert (result.reason, result.steps) == ("stop", 2)
    (only,) = bench.results()
    assert (only.tool_call_id, only.tool_name, only.is_error) == ("a", "echo", True)
    assert text_of(only)
    assert [line for line in bench.trace() if line.startswith("Tool")] == ["ToolStart a", "ToolEnd a"]


async def test_calls_with_the_same_id_have_a_result_each() -> None:
    """Two calls of one message get two results, even where the model gave them one id."""
    bench = Bench(
        ScriptedModel([says("", call("a", n=1), call("a", n=2)), says("", call("a")), says("done")])
    )
    await bench.run()
    assert [message.role[0] for message in bench.transcript] == ["u", "a", "t", "t", "a", "t", "a"]


async def test_nothing_that_model_or_executor_keep_is_the_transcripts() -> None:
    """Model and executor may change what they got and gave, later requests' lists and the transcript stay."""
    given: list[Any] = []

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        asked.arguments["n"] = "changed"
        asked.name = "echo"
        result = ToolResultMessage(asked.id, asked.name, [TextContent("ok")], False, 8, {"n": [1]})
        given.append(result)
        return result

    async def first(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        for shown_message in context.messages:
            shown_message.content.clear()
        context.messages.clear()
        context.tools.clear()
        message = says("", call("a", n=1))
        given.append(message)
        yield MessageDone(message)

    async def second(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        given[0].content.clear()
        given[1].details["n"].append(2)
        given[1].content.clear()
        assert len(context.messages) == 4
        assert context.tools == [SCHEMA]
        yield MessageDone(says("done"))

    bench = Bench(Streams(first, second), execute)
    bench.transcript.append(says("before"))
    result = await bench.run()
    assert result.reason == "stop"
    assert result.messages[:2] == [says("before"), user_message("hello", timestamp=1)]
    assert tool_calls_of(result.messages[2]) == [call("a", n=1)]
    assert bench.results()[0].details == {"n": [1]}
    assert text_of(bench.results()[0]) == "ok"


async def test_abort_during_a_request_closes_stream_and_turn() -> None:
    """An abort ends the request: the stream is closed, the text so far stays in a message "aborted"."""
    closed = asyncio.Event()

    async def reply(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        try:
            yield TextDelta("so far")
            yield ToolCallDelta(call("a"))
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            closed.set()

    def watch(event: AgentEvent) -> None:
        if shown(event) == "MessageUpdate":
            bench.control.abort("enough")
        assert closed.is_set() or shown(event) != "TurnEnd 1"

    bench = Bench(Streams(reply))
    bench.watch = watch
    result = await bench.run()
    assert (result.reason, result.steps) == ("aborted", 1)
    assert bench.last().stop_reason == "aborted"
    assert text_of(bench.last()) == "so far"
    assert "enough" in (bench.last().error_message or "")
    assert tool_calls_of(bench.last()) == []


async def test_abort_before_the_request_asks_nothing() -> None:
    """A run that is aborted as its turn begins says what waits, makes no request, and closes the turn."""
    model = ScriptedModel([says("never")])
    bench = Bench(model)
    bench.watch = lambda event: bench.control.abort() if shown(event) == "TurnStart 1" else None
    result = await bench.run()
    assert (result.reason, result.steps, model.requests) == ("aborted", 0, [])
    assert [text_of(message) for message in result.messages] == ["hello", ""]
    assert bench.last().stop_reason == "aborted"
    assert bench.trace()[-3:] == ["MessageEnd assistant", "TurnEnd 1", "AgentEnd"]


async def test_model_that_swallows_cancellation_is_left_behind() -> None:
    """A model that ignores signal and cancellation holds nothing up, and what it says late is unheard."""
    go_on, over = asyncio.Event(), asyncio.Event()

    async def stubborn(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        yield TextDelta("before")
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        try:
            yield TextDelta("after")
            yield MessageDone(says("after"))
        finally:
            over.set()
            raise RuntimeError("late")

    bench = Bench(Streams(stubborn))
    bench.watch = lambda event: bench.control.abort() if isinstance(event, MessageUpdate) else None
    result = await bench.run()
    seen = len(bench.events)
    go_on.set()
    await soon(over.wait())
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert (result.reason, text_of(bench.last()), len(bench.events)) == ("aborted", "before", seen)
    assert bench.noise == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_abort_during_tools_answers_every_call() -> None:
    """An abort during a tool ends the run after all results, those of calls not begun too."""

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        bench.control.abort("enough")
        await asyncio.sleep(3600)
        raise AssertionError("not reached")

    bench = Bench(ScriptedModel([says("", call("a"), call("b"), call("c")), says("never")]), execute)
    result = await bench.run()
    assert (result.reason, result.steps) == ("aborted", 1)
    assert [(each.tool_call_id, each.is_error) for each in bench.results()] == [
        ("a", True),
        ("b", True),
        ("c", True),
    ]
    assert result.messages[-1] == bench.results()[-1]
    assert [line for line in bench.trace() if line.startswith("Tool")] == ["ToolStart a", "ToolEnd a"]
    assert bench.trace()[-3:] == ["MessageEnd toolResult", "TurnEnd 1", "AgentEnd"]


async def test_tool_that_heeds_the_signal_has_the_last_word() -> None:
    """A tool that ends by itself when its signal is aborted gives the result that joins."""

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        asyncio.get_running_loop().call_soon(bench.control.abort)
        await context.signal.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        return result_of(asked, "stopped half way")

    bench = Bench(ScriptedModel([says("", call("a"))]), execute)
    result = await bench.run()
    assert result.reason == "aborted"
    assert bench.results() == [result_of(call("a"), "stopped half way")]


@pytest.mark.parametrize("late", ["result", "error"])
async def test_tool_that_ignores_its_signal_is_left_behind(late: str) -> None:
    """A tool that swallows cancellation holds nothing up, and its late result or error goes nowhere."""
    go_on = asyncio.Event()
    left: list[weakref.ref[Any]] = []

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        left.append(weakref.ref(asyncio.current_task()))
        bench.control.abort()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        if late == "error":
            raise RuntimeError("late")
        return result_of(asked, "late")

    bench = Bench(ScriptedModel([says("", call("a"))]), execute)
    result = await bench.run()
    before = list(bench.transcript)
    gc.collect()
    assert left[0]() is not None
    go_on.set()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert left[0]() is None
    assert result.messages == bench.transcript == before
    assert text_of(bench.results()[0]) != "late"
    assert bench.noise == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelled_caller_winds_the_run_up() -> None:
    """Cancelling the task that awaits a run answers the calls, closes the turn and raises CancelledError."""
    begun = asyncio.Event()

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        begun.set()
        await asyncio.sleep(3600)
        raise AssertionError("not reached")

    bench = Bench(ScriptedModel([says("", call("a"), call("b"))]), execute)
    run = loop.run_agent_loop(bench.setup, bench.transcript, user_message("hello"), bench.control)
    task = asyncio.create_task(run)
    await soon(begun.wait())
    task.cancel("stop it")
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert [each.tool_call_id for each in bench.results()] == ["a", "b"]
    assert bench.control.signal.aborted
    assert bench.trace()[-2:] == ["TurnEnd 1", "AgentEnd"]


async def test_interrupt_in_a_listener_leaves_no_call_open() -> None:
    """What interrupts the program comes out at once, with every call answered."""

    class Interrupt(BaseException):
        """Stands for KeyboardInterrupt, which pytest would take for its own."""

    def watch(event: AgentEvent) -> None:
        if shown(event) == "ToolEnd b":
            raise Interrupt

    bench = Bench(ScriptedModel([says("", call("a"), call("b"), call("c"))]))
    bench.watch = watch
    with pytest.raises(Interrupt):
        await bench.run()
    assert [(each.tool_call_id, each.is_error) for each in bench.results()] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]


async def test_context_variables_flow_inwards_only() -> None:
    """Model and tools see the caller's context variables; what a tool sets is its own."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def reply(context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        variable.set("the model's")
        yield TextDelta("x")
        seen.append(variable.get())
        yield MessageDone(says("", call("a")) if len(context.messages) == 1 else says("done"))

    async def execute(asked: ToolCall, context: ToolContext) -> ToolResultMessage:
        seen.append(variable.get())
        variable.set("the tool's")
        return result_of(asked)

    variable.set("the caller's")
    await Bench(Streams(reply, reply), execute).run()
    assert seen == ["the model's", "the caller's", "the model's"]
    assert variable.get() == "the caller's"


async def test_queues_are_read_when_their_moment_has_come() -> None:
    """Steers come before the next request, follow-ups one by one when the run would stop."""
    bench = Bench(ScriptedModel([says("1"), says("2"), says("3"), says("4")]))
    bench.setup.steers.extend([user_message("s1"), user_message("s2")])
    bench.setup.follow_ups.extend([user_message("f1"), user_message("f2")])

    def watch(event: AgentEvent) -> None:
        if shown(event) == "TurnStart 2":
            bench.setup.steers.append(user_message("s3"))

    bench.watch = watch
    result = await bench.run()
    assert [text_of(each) for each in result.messages] == [
        *("hello", "s1", "s2", "1"),
        *("f1", "s3", "2"),
        *("f2", "3"),
    ]
    assert isinstance(result.messages[1], UserMessage)
