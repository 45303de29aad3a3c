"""Knows what the library may cost: growth from n to 2n entries, and `clone` against `copy.deepcopy`.

Decision: every figure is the median of paired runs, each pair measured back to back and in processor time,
because what others do on the machine is none of the library's cost.
"""

import asyncio
import copy
import gc
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from pi_course.agent import Agent
from pi_course.context import build_context
from pi_course.events import AgentRunResult
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from pi_course.model import MessageDone, ModelContext, ModelEvent
from pi_course.schema import ToolContext
from pi_course.session import InMemorySessionStore, MessageEntry, MetadataEntry, SessionEntry, path_to
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry
from pi_course.values import clone

PAIRS = 7
SMALL, LARGE, DOUBLINGS = 25_000, 100_000, 2
LINEAR = 2.4
COPIES = 3.0


def measures() -> Iterator[tuple[str, float, str, float]]:
    """Measure one thing after another: its name, the figure, how it has to compare, and the bound."""
    for name, prepare in GROWING.items():
        yield f"{name}: 2n to n, up to {LARGE:,} entries", growth(prepare), "<=", LINEAR
    yield "copy.deepcopy to clone: 1,000 messages", clone_gain(), ">=", COPIES


def growth(prepare: Callable[[int], Callable[[], object]]) -> float:
    """Compare the work on 2n with the work on n: the mean of the doublings up to the large size."""
    small, large = prepare(SMALL), prepare(LARGE)
    return statistics.median((seconds(large) / seconds(small)) ** (1 / DOUBLINGS) for _ in range(PAIRS))


def clone_gain() -> float:
    """Compare `copy.deepcopy` with `clone` on a thousand ordinary messages."""
    messages = conversation(1000)
    return statistics.median(
        seconds(lambda: copy.deepcopy(messages)) / seconds(lambda: clone(messages)) for _ in range(PAIRS)
    )


def seconds(work: Callable[[], object]) -> float:
    """Time one run, without what the collector would make of earlier ones."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.enable()


def conversation(size: int) -> list[AgentMessage]:
    """Make messages as they come: a user's, a call, its result, an answer."""
    turn: list[AgentMessage] = [
        user_message("Which of these files is the parser in?", timestamp=1),
        AssistantMessage(
            [
                TextContent("Let me look."),
                ToolCall("c1", "list", {"path": "src", "depth": 2, "hidden": False}),
            ],
            "toolUse",
            2,
        ),
        ToolResultMessage("c1", "list", [TextContent("src/parser.py\nsrc/lexer.py")], False, 3, {"count": 2}),
        AssistantMessage([TextContent("In src/parser.py.")], "stop", 4),
    ]
    return [clone(turn[place % 4]) for place in range(size)]


def entries_of(size: int) -> list[SessionEntry]:
    """Make a session of one branch."""
    return [
        MessageEntry(str(place), str(place - 1) if place else None, place, message)
        for place, message in enumerate(conversation(size))
    ]


def following_a_path(size: int) -> Callable[[], object]:
    """Prepare `path_to` along all entries, some times over: once takes only milliseconds."""
    entries: list[SessionEntry] = []
    parent = None
    for place in range(size):
        entries.append(MetadataEntry(str(place), parent, place, None))
        parent = entries[-1].id
    return lambda: [path_to(entries, parent or "") for _ in range(3)]


def building_a_context(size: int) -> Callable[[], object]:
    """Prepare `build_context` of a path that fits whole."""
    path = entries_of(size)
    return lambda: build_context(path, max_tokens=size, estimate_tokens=lambda value: 1)


def keeping_a_session(size: int) -> Callable[[], object]:
    """Prepare appending to, and reading from, an `InMemorySessionStore`."""
    entries = entries_of(size)

    async def keep() -> list[SessionEntry]:
        store = InMemorySessionStore()
        for entry in entries:
            await store.append(entry)
        return await store.entries()

    return lambda: asyncio.run(keep())


class Caller:
    """A model that asks for a hundred calls a request, until enough results are there."""

    def __init__(self, results: int) -> None:
        self.results = results

    async def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Ask, or end."""
        calls: list[TextContent | ToolCall] = [ToolCall(f"c{number}", "list", {}) for number in range(100)]
        enough = len(context.messages) > self.results
        yield MessageDone(AssistantMessage([] if enough else calls, "stop", 1))


def running(size: int) -> Callable[[], object]:
    """Prepare a run that adds so many messages with a model and an executor that cost next to nothing."""

    async def execute(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        return ToolResultMessage(call.id, call.name, [], False, 1)

    async def run() -> AgentRunResult:
        agent = Agent(model=Caller(size), tools=ToolRegistry(), tool_executor=execute, max_steps=size)
        return await agent.prompt("Go on.")

    return lambda: asyncio.run(run())


GROWING: dict[str, Callable[[int], Callable[[], object]]] = {
    "path_to": following_a_path,
    "build_context": building_a_context,
    "InMemorySessionStore": keeping_a_session,
    "a run": running,
}


def main(argv: Sequence[str]) -> int:
    """Print a table; status 1 where a bound is missed."""
    missed = 0
    for name, value, comparison, bound in measures():
        holds = value <= bound if comparison == "<=" else value >= bound
        missed += not holds
        print(
            f"{name:45} {value:6.2f} {comparison} {bound:.2f}  {'holds' if holds else 'MISSED'}", flush=True
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
