"""Knows a session of twenty turns and plays it on whatever `pi_course` is on `sys.path`."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pi_course.agent import Agent
from pi_course.context import build_context
from pi_course.events import AgentEnd, AgentEvent, MessageEnd, ToolStart, TurnStart
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
from pi_course.model import MessageDone, Model, ModelContext, ModelEvent
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.session import JsonlSessionStore, MessageEntry, SessionEntry, path_to
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry


class Clerk:
    """A model that calls the tools which the user names, and reports what came of them."""

    async def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Answer the last message."""
        last = context.messages[-1]
        content: list[TextContent | ToolCall] = []
        if isinstance(last, ToolResultMessage):
            content = [TextContent(f"Done: {text_of(last)}.")]
        elif text_of(last) == "hello":
            content = [TextContent("Good morning.")]
        else:
            for number, step in enumerate(text_of(last).split(" and ")):
                name, *amount = step.split()
                content.append(ToolCall(f"call-{number}", name, {"amount": int(amount[0])} if amount else {}))
        calls = any(isinstance(part, ToolCall) for part in content)
        yield MessageDone(AssistantMessage(content, "toolUse" if calls else "stop", 0))


@dataclass
class Remembering:
    """A model that is shown a stored path before what the agent itself knows, within a budget."""

    inner: Model
    path: list[SessionEntry]
    max_tokens: int

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Hang the agent's messages on the path, project both, and ask the inner model."""
        entries = list(self.path)
        for number, message in enumerate(context.messages):
            entries.append(MessageEntry(f"new-{number}", entries[-1].id, 0, message))
        shown = build_context(
            entries,
            max_tokens=self.max_tokens,
            estimate_tokens=words,
            system_prompt=context.system_prompt,
        )
        print(
            f"          model     sees {len(shown.messages)} messages, {shown.used_tokens} of"
            f" {self.max_tokens} tokens; {shown.dropped_messages} are left out"
        )
        inner = ModelContext(shown.messages, shown.system_prompt, context.tools)
        return self.inner.stream(inner, signal)


def words(value: AgentMessage | str) -> int:
    """Estimate one token a word, and one a message."""
    return 1 + len((value if isinstance(value, str) else text_of(value)).split())


def ledger(waiting: asyncio.Event) -> ToolRegistry:
    """Tools that keep a sum, and one that waits for its abort."""
    amounts: list[int] = []

    async def add(arguments: dict[str, Any], context: ToolContext) -> str:
        amounts.append(arguments["amount"])
        return f"{arguments['amount']} added"

    async def total(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"the total is {sum(amounts)}"

    async def wait(arguments: dict[str, Any], context: ToolContext) -> str:
        waiting.set()
        await context.signal.wait()
        return "stopped waiting"

    amount: Any = {"type": "object", "required": ["amount"]}
    registry = ToolRegistry()
    registry.register(
        ToolDefinition("add", "Add an amount.", amount, add),
        ToolDefinition("total", "Tell the total.", {"type": "object"}, total),
        ToolDefinition("wait", "Wait.", {"type": "object"}, wait),
    )
    return registry


@dataclass
class Day:
    """An agent at work whose messages are printed as they join, and kept behind a leaf of a session."""

    model: Model
    store: JsonlSessionStore
    leaf: str | None = None
    prefix: str = "e"
    turns: int = 0
    kept: int = 0
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    at_tool: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.agent = Agent(model=self.model, tools=ledger(self.waiting), system_prompt="Keep the books.")
        self.agent.subscribe(self.show)

    def show(self, event: AgentEvent) -> None:
        """Print what concerns a reader, and act once where a tool starts."""
        if isinstance(event, TurnStart):
            self.turns += 1
            print(f"turn {self.turns}")
        elif isinstance(event, MessageEnd):
            print(f"          {line_of(event.message)}")
        elif isinstance(event, AgentEnd) and event.result.reason != "stop":
            print(f"          run ends: {event.result.reason}")
        elif isinstance(event, ToolStart) and self.at_tool is not None:
            act, self.at_tool = self.at_tool, None
            act()

    async def say(self, text: str) -> None:
        """Prompt, then append what the run added."""
        result = await self.agent.prompt(text)
        for message in result.messages[self.kept :]:
            entry = MessageEntry(f"{self.prefix}{self.kept}", self.leaf, 0, message)
            await self.store.append(entry)
            self.leaf = entry.id
            self.kept += 1


def line_of(message: AgentMessage) -> str:
    """Show a message in one line."""
    if isinstance(message, UserMessage):
        return f"user      {text_of(message)}"
    if isinstance(message, ToolResultMessage):
        return f"{'error ' if message.is_error else 'result'}    {text_of(message)}"
    asked = ", ".join(
        " ".join([call.name, *map(str, call.arguments.values())]) for call in tool_calls_of(message)
    )
    return f"assistant {text_of(message)}" + (f"calls {asked}" if asked else "")


async def first_day(store: JsonlSessionStore) -> tuple[str | None, str | None]:
    """Have twenty turns and give the last leaf and an early one."""
    day = Day(Clerk(), store)
    for text in ("hello", "add 3", "add 4 and add 5", "add"):
        await day.say(text)
    early = day.leaf
    print("\n-- a steer, while the first of two calls runs")
    day.at_tool = lambda: day.agent.steer("total")
    await day.say("add 100 and add 1000")
    print("\n-- a follow-up, queued beforehand")
    day.agent.follow_up("total")
    await day.say("add 6")
    print("\n-- an abort, while a tool waits")
    run = asyncio.create_task(day.say("wait and add 7"))
    await day.waiting.wait()
    day.agent.abort("enough")
    await run
    print("\n-- and on")
    for text in ("total", "hello", "total"):
        await day.say(text)
    return day.leaf, early


async def play() -> None:
    """Talk, read back from disk, go on from an earlier leaf, and fit the first day into a small budget."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        print("== a session of twenty turns")
        last, early = await first_day(JsonlSessionStore(path, durable=True))
        entries = await JsonlSessionStore(path).entries()
        print(f"\n== on disk: {len(entries)} entries; a new agent goes on from {early}, not from {last}")
        day = Day(
            Remembering(Clerk(), path_to(entries, early or ""), 50), JsonlSessionStore(path), early, "b"
        )
        for text in ("add 1", "total"):
            await day.say(text)
        entries = await JsonlSessionStore(path).entries()
        for leaf in (last, day.leaf):
            print(f"\n== the path to {leaf}, in a budget of 24")
            whole = path_to(entries, leaf or "")
            shown = build_context(whole, max_tokens=24, estimate_tokens=words, reserved_output=4)
            for message in shown.messages:
                print(f"          {line_of(message)}")
            print(f"          {shown.used_tokens} tokens used, {shown.dropped_messages} messages left out")


def main(argv: list[str]) -> int:
    """Play the demo; it takes no arguments."""
    asyncio.run(play())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
