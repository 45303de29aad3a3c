"""Chapter 09: what holds for every run, under random schedules of failures and interruptions."""

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pi_course import agent as agents
from pi_course.events import (
    AgentEnd,
    AgentEvent,
    AgentRunResult,
    AgentStart,
    MessageEnd,
    MessageUpdate,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)
from pi_course.model import MessageDone, ModelContext, TextDelta
from pi_course.schema import ToolContext
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry

EVENTS = [AgentStart, TurnStart, MessageUpdate, MessageEnd, ToolStart, ToolEnd, TurnEnd, AgentEnd]
QUIET = ["steer", "follow_up", "abort", "listener_fails", "nothing"]


@dataclass
class Plan:
    """What a model, its tools, a listener and somebody outside are going to do."""

    replies: list[tuple[str, list[str], int]]  # how it ends, what its calls do, event loop turns it takes
    outside: list[tuple[int, str]]  # after so many turns of the event loop, do this
    listening: list[tuple[int, str]]  # at the n-th event, do this
    max_steps: int
    prompts: int
    cancel_after: int | None


@dataclass
class World:
    """One agent under a plan, and all that was seen of it."""

    plan: Plan
    requests: int = 0
    executed: list[str] = field(default_factory=list)
    events: list[AgentEvent] = field(default_factory=list)
    queued: dict[str, list[str]] = field(default_factory=lambda: {"s": [], "f": []})
    agent: agents.Agent = field(init=False)
    noise: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.agent = agents.Agent(
            model=self, tools=ToolRegistry(), tool_executor=self.execute, max_steps=self.plan.max_steps
        )
        self.agent.subscribe(self.listen)

    async def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[Any]:
        """Play the reply of this request."""
        index = self.requests
        self.requests += 1
        how, calls, ticks = self.plan.replies[index % len(self.plan.replies)]
        yield TextDelta("so ")
        await self.spend(ticks, ignore=how == "ignores")
        yield TextDelta("far")
        if how == "raises":
            raise OSError("down")
        if how == "nothing":
            return
        content: list[TextContent | ToolCall] = [TextContent("so far")]
        content += [ToolCall(f"c{place % 2}", what, {}) for place, what in enumerate(calls)]
        stop_reason: Any = how if how in ("error", "aborted") else "toolUse"
        yield MessageDone(AssistantMessage(content, stop_reason, 1))
        if how == "goes on":
            yield TextDelta("more")

    async def execute(self, call: ToolCall, context: ToolContext) -> ToolResultMessage:
        """Do what the call's name says."""
        self.executed.append(call.id)
        await self.spend(3, ignore=call.name == "ignores")
        if call.name == "hangs":
            await asyncio.sleep(3600)
        if call.name == "raises":
            raise OSError("broken")
        if call.name == "cancels":
            raise asyncio.CancelledError
        self.act(call.name)
        paired = call.id if call.name != "unpaired" else "other"
        return ToolResultMessage(paired, call.name, [], False, 1)

    async def spend(self, ticks: int, *, ignore: bool) -> None:
        """Let some turns of the event loop pass; many of them, and no cancellation helps, where ignored."""
        for _ in range(ticks + 40 * ignore):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not ignore:
                    raise

    def act(self, what: str) -> None:
        """Do something to the agent."""
        if what in ("steer", "follow_up"):
            queue = self.queued[what[0]]
            queue.append(f"{what[0]}{len(queue)}")
            getattr(self.agent, what)(queue[-1])
        elif what == "abort":
            self.agent.abort("planned")

    def listen(self, event: AgentEvent) -> None:
        """Keep the event, then do what is planned for it."""
        self.events.append(event)
        for at, what in self.plan.listening:
            if at == len(self.events):
                self.act(what)
                if what == "listener_fails":
                    raise OSError("listener")

    async def outside(self) -> None:
        """Do what is planned from outside."""
        for ticks, what in self.plan.outside:
            await self.spend(ticks, ignore=False)
            self.act(what)

    async def live(self) -> None:
        """Prompt as often as planned and check after each run."""
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.noise.append(context))
        meddler = asyncio.create_task(self.outside())
        for number in range(self.plan.prompts):
            before, asked = len(self.agent.get_state().messages), self.requests
            self.events.clear()
            self.executed.clear()
            run = asyncio.create_task(self.agent.prompt(f"p{number}"))
            if self.plan.cancel_after is not None and number == 0:
                await self.spend(self.plan.cancel_after, ignore=False)
                run.cancel()
            await asyncio.wait({run}, timeout=20)
            assert run.done(), "the run hangs"
            self.check_run(run, before, self.requests - asked)
        await meddler
        await self.spend(100, ignore=False)
        gc.collect(1)
        assert self.noise == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def check_run(self, run: "asyncio.Task[AgentRunResult]", before: int, requests: int) -> None:
        """Check what holds after any run."""
        state = self.agent.get_state()
        assert not state.running
        added = state.messages[before:]
        check_pairing(state.messages)
        check_events(self.events, added, self.executed)
        check_queues(state.messages, self.queued)
        if not run.cancelled():
            result = run.result()
            assert result.messages == state.messages
            assert result.steps == requests <= self.plan.max_steps
            assert self.events[-1] == AgentEnd(result)


def check_pairing(messages: list[AgentMessage]) -> None:
    """Every call has exactly one result, in order, before anything else is said."""
    owed: list[ToolCall] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            call = owed.pop(0)
            assert (message.tool_call_id, message.tool_name) == (call.id, call.name)
            continue
        assert owed == []
        owed = tool_calls_of(message)
    assert owed == []


def check_events(events: list[AgentEvent], added: list[AgentMessage], executed: list[str]) -> None:
    """The events are well nested, and tell of exactly what was added and executed."""
    if not events:  # cancelled before it began
        assert added == []
        return
    kinds = [type(event) for event in events]
    assert (kinds[0], kinds[-1]) == (AgentStart, AgentEnd)
    assert kinds.count(AgentStart) == kinds.count(AgentEnd) == 1
    turns = [event for event in events if isinstance(event, TurnStart | TurnEnd)]
    steps = [step for step in range(1, len(turns) // 2 + 1) for _ in "se"]
    assert [event.step for event in turns] == steps
    assert [type(event) for event in turns] == [TurnStart, TurnEnd] * (len(turns) // 2)
    assert [event.message for event in events if isinstance(event, MessageEnd)] == added
    started = [event.call.id for event in events if isinstance(event, ToolStart)]
    assert started == [event.call_id for event in events if isinstance(event, ToolEnd)]
    assert started == executed
    for event, following in pairwise(events):
        if isinstance(event, ToolStart):
            assert isinstance(following, ToolEnd)
        if isinstance(event, ToolEnd):
            assert following == MessageEnd(event.result)
    spoken = [each for each in added if isinstance(each, AssistantMessage)]
    assert len(spoken) == len(turns) // 2
    assert all(text_of(each) in ("", "so ", "so far") for each in spoken)


def check_queues(messages: list[AgentMessage], queued: dict[str, list[str]]) -> None:
    """What was said of each queue is a beginning of what was queued, in order and once."""
    for name, queue in queued.items():
        said = [text_of(each) for each in messages if isinstance(each, UserMessage)]
        said = [text for text in said if text.startswith(name)]
        assert said == queue[: len(said)]


calls = st.lists(
    st.sampled_from(
        ["ok", "ok", "raises", "cancels", "unpaired", "hangs", "ignores", "steer", "follow_up", "abort"]
    ),
    max_size=4,
)
replies = st.tuples(
    st.sampled_from(["done", "done", "done", "raises", "nothing", "goes on", "error", "aborted", "ignores"]),
    calls,
    st.integers(0, 3),
)


def plans(cancel: st.SearchStrategy[int | None]) -> st.SearchStrategy[Plan]:
    """Plans in which every hanging tool meets an abort sooner or later."""
    meddling = st.lists(st.tuples(st.integers(0, 25), st.sampled_from(QUIET)), max_size=6)
    return st.builds(
        Plan,
        replies=st.lists(replies, min_size=1, max_size=4),
        outside=meddling.map(lambda acts: [*acts, *[(10, "abort")] * 12]),
        listening=st.lists(st.tuples(st.integers(1, 30), st.sampled_from(QUIET)), max_size=4),
        max_steps=st.integers(1, 4),
        prompts=st.integers(1, 3),
        cancel_after=cancel,
    )


def without_a_hang(plan: Plan) -> Plan:
    """A prompt that comes after the last planned abort may not hang for ever: let such tools end."""
    plan.replies = [
        (how, ["ignores" if name == "hangs" and plan.prompts > 1 else name for name in names], ticks)
        for how, names, ticks in plan.replies
    ]
    return plan


@settings(max_examples=250, deadline=None)
@given(plans(st.none() | st.integers(0, 60)).map(without_a_hang))
def test_every_call_has_exactly_one_result(plan: Plan) -> None:
    """Under random failures, steers, follow-ups, aborts and cancellations each call gets its one result."""
    asyncio.run(World(plan).live())


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("what", ["abort", "steer", "follow_up"])
def test_acting_at_every_event_of_a_kind_ends_in_bounded_steps(kind: type, what: str) -> None:
    """A listener that acts each time it hears a kind of event can't keep a run going beyond `max_steps`."""
    plan = Plan([("done", ["ok", "raises"], 1), ("done", [], 1)], [], [], 3, 2, None)
    world = World(plan)
    world.agent.subscribe(lambda event: world.act(what) if isinstance(event, kind) else None)
    asyncio.run(world.live())
