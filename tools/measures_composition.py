"""What the composition root itself costs: per prompt as the history grows, and behind a failed one.

Decision: the process's own time, with the garbage collector off, because a collector's passes come in steps
that hit one half of a pair and not the other. Run it with `pi_course` importable: one line a measure, exit
status 1 where a bound is missed.
"""

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator

from pi_course import composition
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from pi_course.model import MessageDone, ModelContext, ModelEvent
from pi_course.resources import ResourceCatalog
from pi_course.session import MessageEntry, SessionEntry
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry
from pi_course.values import clone

Measure = tuple[str, float, str, float]

PAIRS = 7
SHORT, LONG = 400, 3200  # entries of history
QUEUED = 10_000


def measures() -> Iterator[Measure]:
    """Yield name, value, "<=" or ">=", and bound of each measure; medians of paired runs."""
    yield (
        f"overhead of a prompt, {LONG} entries of history to {SHORT}",
        _paired(lambda: _prompt_seconds(LONG), lambda: _prompt_seconds(SHORT)),
        "<=",
        9.0,
    )
    for entries in (SHORT, LONG):
        yield (
            f"overhead of a prompt to clones of {entries} messages (4, and 2 a model request)",
            _paired(lambda n=entries: _prompt_seconds(n), lambda n=entries: _clone_seconds(n)),
            "<=",
            4.0 + 2.0 * _REQUESTS,
        )
    yield (
        f"prompts behind a failed one, {2 * QUEUED} to {QUEUED}",
        _paired(lambda: _queue_seconds(2 * QUEUED), lambda: _queue_seconds(QUEUED)),
        "<=",
        2.4,
    )


_REQUESTS = 2  # of the measured prompt: one with a tool call, one with the answer
_CALL = ToolCall("call-1", "nothing", {})


class _QuickModel:
    """Answers at once, keeps nothing: a tool call first, then text."""

    async def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        calls = [_CALL] if context.messages[-1].role == "user" else []
        yield MessageDone(AssistantMessage([TextContent("ok"), *calls], "stop", 1))


class _QuickStore:
    """Gives a history once, then takes what comes and keeps nothing; or waits for `gate` and fails."""

    def __init__(self, entries: list[SessionEntry], failing: asyncio.Event | None = None) -> None:
        self._entries = entries
        self._failing = failing

    async def entries(self) -> list[SessionEntry]:
        return self._entries

    async def append(self, entry: SessionEntry) -> None:
        if self._failing is not None:
            await self._failing.wait()
            raise OSError("full")


def _messages(count: int) -> list[AgentMessage]:
    """Ordinary chat: a question, a tool call, its result and an answer, over and over."""
    messages: list[AgentMessage] = []
    for turn in range(count // 4):
        call = ToolCall(f"call-{turn}", "read", {"path": f"src/parser_{turn}.py", "lines": [1, 200]})
        text = TextContent("some line of code or talk, " * 8)
        messages += [
            user_message(f"question {turn} {text.text}", timestamp=turn),
            AssistantMessage([text, call], "toolUse", turn),
            ToolResultMessage(call.id, call.name, [text], False, turn, {"lines": 200}),
            AssistantMessage([text], "stop", turn),
        ]
    return messages


def _path(messages: list[AgentMessage]) -> list[SessionEntry]:
    return [
        MessageEntry(f"m{index}", f"m{index - 1}" if index else None, 1, message)
        for index, message in enumerate(messages)
    ]


async def _runtime(store: _QuickStore, leaf_id: str | None) -> composition.Runtime:
    budget = composition.ContextBudget(10**9, lambda _value: 1)
    parts = composition.RuntimeDeps(_QuickModel(), ToolRegistry(), store, ResourceCatalog([], [], [], []))
    return await composition.create_runtime(composition.RuntimeConfig(leaf_id, budget), parts)


def _prompt_seconds(entries: int) -> float:
    """How long one prompt takes on a history of so many entries; model and store take no time."""

    async def measured() -> float:
        runtime = await _runtime(_QuickStore(_path(_messages(entries))), f"m{entries - 1}")
        await runtime.prompt("once, to warm up")
        return await _timed(lambda: runtime.prompt("again"))

    return asyncio.run(measured())


async def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        awaitable = work()
        if asyncio.iscoroutine(awaitable):
            await awaitable
        return time.process_time() - start
    finally:
        gc.enable()


def _clone_seconds(entries: int) -> float:
    messages = _messages(entries)
    clone(messages)
    return asyncio.run(_timed(lambda: clone(messages)))


def _queue_seconds(count: int) -> float:
    """How long so many queued prompts take to get the error of the one before them, with their tasks."""

    async def measured() -> float:
        gate = asyncio.Event()
        runtime = await _runtime(_QuickStore([], gate), None)

        async def all_fail() -> None:
            tasks = [asyncio.ensure_future(runtime.prompt("x")) for _ in range(count)]
            await asyncio.sleep(0)
            gate.set()
            errors = await asyncio.gather(*tasks, return_exceptions=True)
            if len({id(error) for error in errors}) != 1 or not isinstance(errors[0], OSError):
                raise AssertionError("not all prompts got the one error")

        return await _timed(all_fail)

    return asyncio.run(measured())


def _paired(first: Callable[[], float], second: Callable[[], float]) -> float:
    """The median ratio of runs taken in turns, so that a slow moment hits both."""
    return statistics.median(first() / second() for _ in range(PAIRS))


def main() -> int:
    """Print every measure; 1 where a bound is missed."""
    missed = 0
    for name, value, sense, bound in measures():
        good = value <= bound if sense == "<=" else value >= bound
        missed += not good
        print(f"{'ok ' if good else 'BAD'} {value:8.2f} {sense} {bound:g}  {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
