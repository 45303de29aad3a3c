"""Chapters 01 to 11 together: a session of twenty turns, written by one who read only the interface."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pi_course.agent import Agent
from pi_course.context import ContextProjection, build_context
from pi_course.events import AgentEvent, AgentRunResult, ToolStart, TurnStart
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    text_of,
)
from pi_course.model import MessageDone, Model, ModelContext, ModelEvent, TextDelta, ToolCallDelta
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.session import (
    JsonlSessionStore,
    MessageEntry,
    MetadataEntry,
    SessionEntry,
    SessionStore,
    path_to,
)
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry


class Clerk:
    """A model with manners: it asks for a tool where the user names one, and reports what came of it."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    async def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Answer the last message."""
        self.seen.append([text_of(message) for message in context.messages])
        last = context.messages[-1]
        content: list[TextContent | ToolCall] = []
        if isinstance(last, ToolResultMessage):
            content.append(TextContent(f"Done: {text_of(last)}."))
        else:
            for number, step in enumerate(text_of(last).split(" and ")):
                name, *rest = step.split()
                arguments = {"amount": int(rest[0])} if rest and rest[0].isdigit() else {}
                call_id = f"{len(context.messages)}.{number}"
                content.append(
                    ToolCall(call_id, name, arguments)
                    if name in ("add", "total", "wait")
                    else TextContent("Yes?")
                )
        for part in content:
            yield TextDelta(part.text) if isinstance(part, TextContent) else ToolCallDelta(part)
        calls = any(isinstance(part, ToolCall) for part in content)
        yield MessageDone(AssistantMessage(content, "toolUse" if calls else "stop", 0))


class Remembering:
    """A model that is shown a stored path before what the agent itself knows, within a budget."""

    def __init__(self, inner: Model, path: list[SessionEntry], max_tokens: int) -> None:
        self.inner = inner
        self.path = path
        self.max_tokens = max_tokens
        self.projections: list[ContextProjection] = []

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Hang the agent's messages on the path, project both, and ask the inner model."""
        entries, parent = list(self.path), self.path[-1].id if self.path else None
        for number, message in enumerate(context.messages):
            entries.append(MessageEntry(f"new-{number}", parent, 0, message))
            parent = f"new-{number}"
        projection = build_context(
            entries,
            max_tokens=self.max_tokens,
            estimate_tokens=words,
            system_prompt=context.system_prompt,
        )
        self.projections.append(projection)
        shown = ModelContext(projection.messages, projection.system_prompt, context.tools)
        return self.inner.stream(shown, signal)


def words(value: AgentMessage | str) -> int:
    """Estimate one token a word, and one a message."""
    return 1 + len((value if isinstance(value, str) else text_of(value)).split())


def ledger(waiting: asyncio.Event | None = None) -> ToolRegistry:
    """Tools that keep a sum, and one that waits for its abort and says so."""
    amounts: list[int] = []

    async def add(arguments: dict[str, Any], context: ToolContext) -> str:
        amounts.append(arguments["amount"])
        return f"{arguments['amount']} added"

    async def total(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"the total is {sum(amounts)}"

    async def wait(arguments: dict[str, Any], context: ToolContext) -> str:
        if waiting is not None:
            waiting.set()
        await context.signal.wait()
        return "stopped waiting"

    amount = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    registry = ToolRegistry()
    registry.register(
        ToolDefinition("add", "Add an amount.", amount, add),  # type: ignore[arg-type]
        ToolDefinition("total", "Tell the total.", {"type": "object"}, total),
        ToolDefinition("wait", "Wait.", {"type": "object"}, wait),
    )
    return registry


class Book:
    """Keeps a session: each new message becomes an entry behind the leaf."""

    def __init__(self, store: SessionStore, leaf: str | None = None, first: int = 1) -> None:
        self.store = store
        self.leaf = leaf
        self.ids = map("e{}".format, itertools.count(first))
        self.kept = 0

    async def keep(self, result: AgentRunResult) -> None:
        """Append what the run added."""
        for message in result.messages[self.kept :]:
            entry = MessageEntry(next(self.ids), self.leaf, 0, message)
            await self.store.append(entry)
            self.leaf = entry.id
        self.kept = len(result.messages)


def at_tool_start(agent: Agent, name: str, act: Any) -> None:
    """Act the first time that a tool of this name starts."""

    def listener(event: AgentEvent) -> None:
        if isinstance(event, ToolStart) and event.call.name == name:
            unsubscribe()
            act()

    unsubscribe = agent.subscribe(listener)


async def first_day(store: SessionStore) -> tuple[list[str], list[int], str]:
    """Have twenty turns, with all that can happen; give the runs' reasons, the turns and an early leaf."""
    waiting = asyncio.Event()
    agent = Agent(model=Clerk(), tools=ledger(waiting), system_prompt="You keep the books.")
    turns: list[int] = []
    agent.subscribe(lambda event: turns.append(event.step) if isinstance(event, TurnStart) else None)
    book = Book(store)
    reasons: list[str] = []
    branch = ""

    async def say(text: str) -> None:
        result = await asyncio.wait_for(agent.prompt(text), 20)
        reasons.append(result.reason)
        await book.keep(result)

    for text in ("hello", "add 3", "add 4 and add 5", "add"):  # 1 + 2 + 2 + 2 turns
        await say(text)
    branch = book.leaf or ""
    at_tool_start(agent, "add", lambda: agent.steer("total"))
    await say("add 100 and add 1000")  # 3 turns: the steer comes after the first call, the second is not run
    agent.follow_up("total")
    await say("add 6")  # 4 turns, two of them the follow-up's
    run = asyncio.create_task(say("wait and add 7"))  # 1 turn
    await asyncio.wait_for(waiting.wait(), 20)
    agent.abort("enough")
    await run
    for text in ("total", "hello", "total"):  # 2 + 1 + 2 turns
        await say(text)
    await store.append(MetadataEntry("note", book.leaf, 0, {"title": "first day"}))
    return reasons, turns, branch


async def test_twenty_turns_are_told_kept_resumed_and_projected(tmp_path: Path) -> None:
    """A session with all that can happen goes to disk, is resumed on another branch, and is made to fit."""
    path = tmp_path / "session.jsonl"
    reasons, turns, branch = await first_day(JsonlSessionStore(path, durable=True))
    assert len(turns) == 20
    assert reasons == ["stop"] * 6 + ["aborted"] + ["stop"] * 3
    entries = await JsonlSessionStore(path).entries()
    first = path_to(entries, "note")
    spoken = [text_of(entry.message) for entry in first if isinstance(entry, MessageEntry)]
    assert spoken[-1] == "Done: the total is 118."
    steered = spoken.index("add 100 and add 1000")
    assert spoken[steered + 1 : steered + 3] == ["", "100 added"]
    assert spoken[steered + 4 : steered + 8] == ["total", "", "the total is 112", "Done: the total is 112."]
    assert spoken.count("stopped waiting") == 1
    assert "7 added" not in spoken

    branched = path_to(entries, branch)
    clerk = Clerk()
    model = Remembering(clerk, branched, 60)
    agent = Agent(model=model, tools=ledger(), system_prompt="You keep the books.")
    book = Book(JsonlSessionStore(path), branch, first=1000)
    for text in ("add 1", "hello", "total"):
        await book.keep(await asyncio.wait_for(agent.prompt(text), 20))
    assert clerk.seen[0][0] == "add 3"
    assert clerk.seen[0][-1] == "add 1"
    assert [projection.dropped_messages for projection in model.projections] == [2, 6, 6, 11, 11]
    assert all(projection.used_tokens <= 60 for projection in model.projections)

    everything = await JsonlSessionStore(path).entries()
    resumed = path_to(everything, book.leaf or "")
    assert resumed[: len(branched)] == branched
    assert path_to(everything, "note") == first
    texts = [text_of(entry.message) for entry in resumed if isinstance(entry, MessageEntry)]
    assert texts[-1] == "Done: the total is 1."
    assert "add 100 and add 1000" not in texts

    small = build_context(first, max_tokens=24, estimate_tokens=words, reserved_output=5)
    assert [text_of(message) for message in small.messages] == [
        *("hello", "Yes?"),
        *("total", "", "the total is 118", "Done: the total is 118."),
    ]
    assert small.used_tokens == 23
    assert small.dropped_messages == len(first) - 1 - len(small.messages)
