"""Chapter 09: the agent as its users see it."""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pi_course import agent as agents
from pi_course.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageUpdate,
    ToolEnd,
    ToolStart,
    TurnEnd,
)
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
from pi_course.model import MessageDone, ModelContext, ModelEvent, ScriptedModel, TextDelta
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry

NO_SCHEMA: Any = {"type": "object"}


def says(text: str, *names: str, stop_reason: Any = "stop") -> AssistantMessage:
    """An assistant message of text and calls; a call's id is its tool's name."""
    calls = [ToolCall(name, name.rstrip("0123456789"), {"path": ["a"]}) for name in names]
    content: list[TextContent | ToolCall] = [TextContent(text)] if text else []
    return AssistantMessage(content + list(calls), stop_reason, 7)


def tools(**functions: Callable[[], Awaitable[Any]]) -> ToolRegistry:
    """A registry of tools without arguments, and of `read`, which gives back its path."""

    async def read(arguments: dict[str, Any], context: ToolContext) -> str:
        return "/".join(arguments["path"])

    registry = ToolRegistry()
    registry.register(ToolDefinition("read", "", NO_SCHEMA, read))
    for name, function in functions.items():

        def execute(arguments: Any, context: ToolContext, function: Any = function) -> Any:
            return function()

        registry.register(ToolDefinition(name, "", NO_SCHEMA, execute))
    return registry


def make(*replies: Any, registry: ToolRegistry | None = None, **options: Any) -> agents.Agent:
    """An agent with a scripted model."""
    return agents.Agent(model=ScriptedModel(replies), tools=registry or tools(), **options)


async def soon(work: Awaitable[Any]) -> Any:
    """Await something that may not take long: a hang is a failed assertion."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=20)
    assert done, "still waiting after 20 seconds"
    return task.result()


def texts(messages: list[AgentMessage]) -> list[str]:
    """The messages' texts; of a failed result only that it is one."""
    return [
        "failed" if isinstance(message, ToolResultMessage) and message.is_error else text_of(message)
        for message in messages
    ]


def when(agent: agents.Agent, kind: type, do: Callable[[], Any]) -> None:
    """Do something at the first event of a kind."""
    waiting = [do]

    def listener(event: AgentEvent) -> None:
        if isinstance(event, kind) and waiting:
            waiting.pop()()

    agent.subscribe(listener)


class Hanging:
    """A model that says something and then hangs."""

    def __init__(self) -> None:
        self.hangs = asyncio.Event()

    async def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Say something and hang."""
        yield TextDelta("so far")
        self.hangs.set()
        await asyncio.sleep(3600)
        yield MessageDone(says("never"))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"model": None}, TypeError),
        ({"model": "gpt"}, TypeError),
        ({"tools": None}, TypeError),
        ({"tools": []}, TypeError),
        ({"tool_executor": "execute"}, TypeError),
        ({"system_prompt": b"bytes"}, TypeError),
        ({"max_steps": 0}, ValueError),
        ({"max_steps": -1}, ValueError),
        ({"max_steps": 1.0}, TypeError),
        ({"max_steps": True}, TypeError),
        ({"max_steps": None}, TypeError),
    ],
)
def test_bad_argument_is_refused_at_construction(options: dict[str, Any], error: type[Exception]) -> None:
    """A wrong type is TypeError, a `max_steps` below 1 ValueError, before there is an agent."""
    good: dict[str, Any] = {"model": ScriptedModel([]), "tools": ToolRegistry()}
    with pytest.raises(error):
        agents.Agent(**(good | options))
    with pytest.raises(TypeError):  # and nothing is given by position
        agents.Agent(*good.values())  # type: ignore[misc]


async def test_prompt_gives_reason_steps_and_transcript() -> None:
    """A prompt runs to the end, by the registry's tools or by an executor, and is `running` until then."""

    async def execute(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        assert not context.signal.aborted
        return ToolResultMessage(call.id, call.name, [TextContent("mine")], False, 1)

    for executor, results in ((None, ["a", "failed"]), (execute, ["mine", "mine"])):
        model = ScriptedModel([says("", "read", "nosuch"), says("done")])
        options: Any = {"tool_executor": executor, "system_prompt": "SYSTEM"}
        agent = agents.Agent(model=model, tools=tools(), **options)
        seen = [agent.get_state().running]
        agent.subscribe(lambda event, agent=agent, seen=seen: seen.append(agent.get_state().running))
        result = await agent.prompt("hello")
        assert (result.reason, result.steps) == ("stop", 2)
        assert texts(result.messages) == ["hello", "", *results, "done"]
        assert isinstance(result.messages[0], UserMessage)
        assert abs(result.messages[0].timestamp - user_message("now").timestamp) < 60_000
        assert (seen[0], set(seen[1:]), agent.get_state().running) == (False, {True}, False)
        assert [schema.name for schema in model.requests[0].tools] == ["read"]
        assert model.requests[0].system_prompt == "SYSTEM"


async def test_next_prompt_goes_on_with_the_conversation() -> None:
    """A prompt adds to the same transcript, however the run before ended; `steps` counts its own requests."""
    agent = make(says("", "read"), says("one"), says("two"))
    await agent.prompt("first")
    given = user_message("second", timestamp=5)
    result = await agent.prompt(given)
    given.content[0].text = "changed"
    assert result.steps == 1
    assert texts(result.messages) == ["first", "", "a", "one", "second", "two"]
    assert result.messages[4] == user_message("second", timestamp=5)
    agent = make(ConnectionError("down"), says("", "read"), says("up"), max_steps=1)
    reasons = [(await agent.prompt(str(number))).reason for number in range(3)]
    assert reasons == ["error", "max_steps", "stop"]
    assert texts(agent.get_state().messages)[-2:] == ["2", "up"]


@pytest.mark.parametrize(
    "value", [None, 7, b"text", says("no"), [user_message("x")], UserMessage("text", 1), UserMessage([], "1")]
)
async def test_prompt_that_is_no_user_message_is_refused(value: Any) -> None:
    """Anything but text and user messages is TypeError or ValueError, and nothing has happened."""
    agent = make(says("never"))
    with pytest.raises((TypeError, ValueError)):
        await agent.prompt(value)
    for queue in (agent.steer, agent.follow_up):
        with pytest.raises(TypeError):
            queue(value)
    assert agent.get_state() == agents.AgentState([], False)


async def test_second_prompt_while_one_runs_is_refused() -> None:
    """A prompt during a run is AgentBusyError, wherever it comes from, and leaves the run alone."""
    errors: list[str] = []

    async def nested() -> str:
        try:
            await agent.prompt("nested")
        except agents.AgentBusyError:
            errors.append("tool")
        return "ok"

    async def from_listener() -> None:
        with pytest.raises(agents.AgentBusyError):
            await agent.prompt("from a listener")
        errors.append("listener")

    tasks: list[asyncio.Task[None]] = []
    agent = make(says("", "nested"), says("done"), registry=tools(nested=nested))
    when(agent, ToolStart, lambda: tasks.append(asyncio.create_task(from_listener())))
    result = await soon(agent.prompt("hello"))
    await soon(asyncio.gather(*tasks))
    assert sorted(errors) == ["listener", "tool"]
    assert texts(result.messages) == ["hello", "", "ok", "done"]


async def test_what_an_agent_gives_away_is_a_deep_copy() -> None:
    """Changing a result, a state or an event changes neither the transcript nor what others get."""
    agent = make(says("hi", "read"), says("done"))
    seen: list[AgentEvent] = []

    def vandal(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd):
            event.message.content.clear()
        elif isinstance(event, ToolStart):
            event.call.arguments["path"] = ["vandal"]
        elif isinstance(event, ToolEnd):
            event.result.content.clear()
        elif isinstance(event, AgentEnd):
            event.result.messages.clear()

    agent.subscribe(vandal)
    agent.subscribe(seen.append)
    result = await agent.prompt("hello")
    expected = ["hello", "hi", "a", "done"]
    assert texts(result.messages) == texts(agent.get_state().messages) == expected
    assert seen[-1] == AgentEnd(result)
    assert [text_of(event.message) for event in seen if isinstance(event, MessageEnd)] == expected
    for message in (*result.messages, *agent.get_state().messages):
        message.content.clear()
    agent.get_state().messages.clear()
    assert texts(agent.get_state().messages) == expected


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, GeneratorExit, AssertionError])
async def test_listener_that_raises_breaks_nothing(error: type[BaseException]) -> None:
    """A listener's exception changes neither the run nor what others hear; only an interrupt comes out."""

    def broken(event: AgentEvent) -> None:
        raise error

    agent, calm = make(says("", "read"), says("done")), make(says("", "read"), says("done"))
    heard: list[list[str]] = [[], []]
    agent.subscribe(broken)
    for each, trace in zip((agent, calm), heard, strict=True):
        each.subscribe(lambda event, trace=trace: trace.append(type(event).__name__))
    result = await soon(agent.prompt("hello"))
    assert texts(result.messages) == texts((await calm.prompt("hello")).messages)
    assert heard[0] == heard[1]
    agent = make(says("", "read1", "read2"), says("again"))
    when(agent, ToolEnd, sys.exit)
    with pytest.raises(SystemExit):
        await agent.prompt("hello")
    assert texts(agent.get_state().messages) == ["hello", "", "failed", "failed"]
    assert (await agent.prompt("on")).reason == "stop"


async def test_subscription_ends_when_its_unsubscribe_is_called() -> None:
    """Unsubscribing works in a callback, for itself and for others, twice, and for one of two alike."""
    agent = make(says("hi"), says("hi"))
    heard: list[str] = []

    def once(event: AgentEvent) -> None:
        heard.append("once")
        leave_once()
        leave_other()
        agent.subscribe(lambda event: heard.append("new") if isinstance(event, AgentEnd) else None)

    def twice(event: AgentEvent) -> None:
        heard.append("twice")

    leave_once = agent.subscribe(once)
    leave_other = agent.subscribe(lambda event: heard.append("other"))
    leave_first = agent.subscribe(twice)
    agent.subscribe(twice)
    leave_first()
    leave_first()
    await agent.prompt("hello")
    assert heard == ["once"] + ["twice"] * 7 + ["new"]

    async def coroutine_function(event: AgentEvent) -> None: ...

    for wrong in (coroutine_function, None, "print"):  # none can be called plainly
        with pytest.raises(TypeError):
            agent.subscribe(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", [AgentStart, MessageUpdate, MessageEnd, ToolStart, ToolEnd])
async def test_steer_comes_before_the_next_request(moment: type) -> None:
    """A steer at any moment of a turn is said before the next request; calls not begun are not run."""
    agent = make(says("one", "read1", "read2"), says("two"))
    when(agent, moment, lambda: (agent.steer("a"), agent.steer("b")))
    started: list[str] = []
    agent.subscribe(lambda event: started.append(event.call.id) if isinstance(event, ToolStart) else None)
    result = await agent.prompt("hello")
    if moment in (AgentStart, MessageEnd):
        assert texts(result.messages) == ["hello", "a", "b", "one", "a", "a", "two"]
    elif moment is MessageUpdate:
        assert texts(result.messages) == ["hello", "one", "failed", "failed", "a", "b", "two"]
        assert started == []
    else:
        assert texts(result.messages) == ["hello", "one", "a", "failed", "a", "b", "two"]
        assert started == ["read1"]
    assert result.reason == "stop"


async def test_steer_during_the_final_reply_continues_the_run() -> None:
    """A steer while the last reply is written, or after it, leads to a turn, before any follow-up's."""
    agent = make(says("one"), says("two"), says("three"), says("four"))
    agent.follow_up("f")
    when(agent, MessageUpdate, lambda: agent.steer("s1"))
    when(agent, TurnEnd, lambda: when(agent, TurnEnd, lambda: agent.steer("s2")))
    result = await agent.prompt("hello")
    assert texts(result.messages) == ["hello", "one", "s1", "two", "s2", "three", "f", "four"]
    assert (result.steps, result.reason) == (4, "stop")


async def test_steer_without_a_request_to_come_is_said_right_after_the_next_prompt() -> None:
    """What is steered while idle, or in a run's last step, comes behind the next prompt's message."""
    model = ScriptedModel([says("hi")])
    agent = agents.Agent(model=model, tools=tools())
    agent.steer("s1")
    agent.steer("s2")
    result = await agent.prompt("hello")
    assert texts(result.messages) == ["hello", "s1", "s2", "hi"]
    assert texts(model.requests[0].messages) == ["hello", "s1", "s2"]
    agent = make(says("", "read1", "read2"), says("more"), says("end"), max_steps=1)
    when(agent, ToolEnd, lambda: agent.steer("later"))
    first = await agent.prompt("hello")
    second = await agent.prompt("again")
    assert (first.reason, texts(first.messages)) == ("max_steps", ["hello", "", "a", "failed"])
    assert (second.reason, texts(second.messages)[4:]) == ("stop", ["again", "later", "more"])


async def test_follow_ups_are_said_one_at_a_time_when_the_run_would_stop() -> None:
    """A follow-up waits for replies, calls and steers before it; a reply cut by "length" is an end, too."""
    agent = make(says("", "read"), says("1", stop_reason="length"), says("2", "read"), says("3"), says("4"))
    agent.follow_up("f1")
    when(agent, ToolEnd, lambda: (agent.follow_up("f2"), agent.steer("s")))
    result = await agent.prompt("hello")
    assert texts(result.messages) == ["hello", "", "a", "s", "1", "f1", "2", "a", "3", "f2", "4"]
    assert (result.reason, result.steps) == ("stop", 5)


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([says("", "read"), says("", "read")], "max_steps"),
        ([says("", "read"), says("hi")], "max_steps"),
        ([OSError("down")], "error"),
        ([says("no", stop_reason="aborted")], "aborted"),
    ],
)
async def test_follow_up_survives_a_run_that_could_not_say_it(replies: list[Any], reason: str) -> None:
    """A run that ends by "max_steps" or "error" leaves the follow-up for the next one."""
    agent = make(*replies, says("a"), says("b"), max_steps=2)
    agent.follow_up("later")
    assert (await agent.prompt("hello")).reason == reason
    assert "later" not in texts(agent.get_state().messages)
    result = await agent.prompt("again")
    assert texts(result.messages)[-4:] == ["again", "a", "later", "b"]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (AgentStart, ["hello", ""]),
        (MessageUpdate, ["hello", "one"]),
        (ToolStart, ["hello", "one", "failed", "failed"]),
        (ToolEnd, ["hello", "one", "a", "failed"]),
    ],
)
async def test_abort_at_any_moment_ends_the_run_in_order(moment: type, expected: list[str]) -> None:
    """An abort lets nothing begin: calls are answered, the turn closed, queues kept. While idle it's void."""
    agent = make(says("one", "read1", "read2"), says("two"), says("three"))
    agent.abort("idle")
    when(agent, moment, lambda: (agent.abort("enough"), agent.abort("again"), agent.follow_up("later")))
    result = await agent.prompt("hello")
    assert (result.reason, texts(result.messages)) == ("aborted", expected)
    last = result.messages[-1]
    if isinstance(last, AssistantMessage):
        assert last.stop_reason == "aborted"
        assert "enough" in str(last.error_message)
        assert "again" not in str(last.error_message)
    agent.abort("idle again")
    following = await agent.prompt("on")
    assert following.reason == "stop"
    assert "later" in texts(following.messages)


async def test_abort_from_another_thread_ends_a_hanging_request() -> None:
    """`abort` may be called from a thread, as a signal handler or a user interface does."""
    asyncio.get_running_loop().set_debug(True)  # finds out what is not safe between threads
    model = Hanging()
    agent = agents.Agent(model=model, tools=tools())
    task = asyncio.create_task(agent.prompt("hello"))
    await soon(model.hangs.wait())
    thread = threading.Thread(target=agent.abort, args=("from a thread",))
    thread.start()
    result = await soon(task)
    thread.join()
    assert (result.reason, texts(result.messages)) == ("aborted", ["hello", "so far"])


@pytest.mark.parametrize("where", ["request", "tool", "start"])
async def test_cancelling_the_caller_leaves_a_sound_agent(where: str) -> None:
    """CancelledError or TimeoutError comes out of a run wound up: no task stays, the next prompt runs."""
    model = Hanging()
    begun = asyncio.Event()

    async def wait() -> str:
        begun.set()
        await asyncio.sleep(3600)
        return "never"

    agent = make(says("", "wait", "read"), says("ok"), registry=tools(wait=wait))
    if where == "request":
        agent = agents.Agent(model=model, tools=tools())
    task = asyncio.create_task(agent.prompt("hello"))
    await asyncio.sleep(0)
    if where != "start":
        await soon((model.hangs if where == "request" else begun).wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    state = agent.get_state()
    assert not state.running
    assert asyncio.all_tasks() == {asyncio.current_task()}
    if where == "tool":
        assert texts(state.messages) == ["hello", "", "failed", "failed"]
        assert (await agent.prompt("on")).reason == "stop"
    else:
        assert isinstance(state.messages[-1], AssistantMessage)
        assert state.messages[-1].stop_reason == "aborted"
        hanging = agents.Agent(model=Hanging(), tools=tools())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await hanging.prompt("hello")
        assert not hanging.get_state().running


async def test_fifty_agents_at_once_stay_apart() -> None:
    """Fifty agents with one registry run at the same time, some aborted, and mix nothing up."""

    async def nap() -> str:
        await asyncio.sleep(0.001)
        return "ok"

    registry = tools(nap=nap)

    async def one(number: int) -> list[str]:
        agent = make(says(f"a{number}", "nap", "nap1"), says(f"b{number}"), registry=registry)
        if number % 5 == 0:
            when(agent, ToolStart, agent.abort)
        result = await agent.prompt(f"p{number}")
        assert result.reason == ("aborted" if number % 5 == 0 else "stop")
        return texts(result.messages)

    everyone = await soon(asyncio.gather(*(one(number) for number in range(50))))
    for number, heard in enumerate(everyone):
        ending = ["failed", "failed"] if number % 5 == 0 else ["ok", "ok", f"b{number}"]
        assert heard == [f"p{number}", f"a{number}", *ending]
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_agent_may_be_used_in_one_event_loop_after_another() -> None:
    """An agent made outside any loop runs in each, an aborted and a cancelled run included."""
    agent = make(says("1"), says("2", "read"), says("3"))
    when(agent, ToolStart, agent.abort)
    reasons = [asyncio.run(agent.prompt(str(number))).reason for number in range(3)]
    assert reasons == ["stop", "aborted", "stop"]
