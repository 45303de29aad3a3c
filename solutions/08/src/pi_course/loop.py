"""The loop of one run: say what waits, ask the model, run its tools, until there is nothing more to do.

It knows no session, budget or extension. Decision: what can hang (a model, a tool) is a task, waited for in
one place, `settle`, because there abort and cancellation become one: a run wound up with all calls answered.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from pi_course.events import (
    AgentEnd,
    AgentEvent,
    AgentRunResult,
    AgentStart,
    MessageEnd,
    MessageUpdate,
    RunReason,
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
    message_from_json,
    message_to_json,
    now_ms,
    tool_calls_of,
)
from pi_course.model import (
    MessageDone,
    Model,
    ModelContext,
    ModelEvent,
    ModelProtocolError,
    TextDelta,
    ToolCallDelta,
    ToolSchema,
    collect,
)
from pi_course.schema import ToolContext
from pi_course.signals import AbortController, AbortError
from pi_course.tools import ToolExecutor, error_result
from pi_course.values import clone

_T = TypeVar("_T")
_M = TypeVar("_M", bound=AgentMessage)

_PATIENCE = 25  # turns of the event loop that work gets to end by itself; no clock, so runs are reproducible
_TASKS: set[asyncio.Task[Any]] = set()  # asyncio itself keeps only weak references to tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSetup:
    """What a run works with; the queues fill up while it goes on, and what is left in them stays there."""

    model: Model
    execute: ToolExecutor
    schemas: Callable[[], list[ToolSchema]]
    system_prompt: str | None
    max_steps: int
    emit: Callable[[AgentEvent], None]
    steers: deque[UserMessage]
    follow_ups: deque[UserMessage]


class RunControl:
    """The handle by which a run is aborted; made inside the event loop that the run belongs to."""

    def __init__(self) -> None:
        self._controller = AbortController()
        self._loop = asyncio.get_running_loop()
        self.signal = self._controller.signal
        self.stopped = self._loop.create_future()

    def abort(self, reason: object = None) -> None:
        """Abort the signal and wake the loop; from any thread, any number of times."""
        self._controller.abort(reason)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.stopped.done():
            self.stopped.set_result(None)


async def run_agent_loop(
    setup: LoopSetup, transcript: list[AgentMessage], prompt: UserMessage, control: RunControl
) -> AgentRunResult:
    """Add one run to the transcript and say how it ended; only an interrupt or a cancelled caller raises."""
    run = _Run(setup, transcript, control)
    setup.emit(AgentStart())
    try:
        reason = await run.turns(prompt)
    except BaseException:  # an interrupt, or the coroutine is thrown away: no time left for events
        run.answer_open_calls()
        raise
    result = AgentRunResult(reason, run.steps, clone(transcript))
    setup.emit(AgentEnd(result))
    if run.cancelled is not None:
        raise run.cancelled
    return result


def detached(message: _M) -> _M:
    """Copy a message by way of its wire form: TypeError or ValueError for one that has none."""
    return cast(_M, message_from_json(message_to_json(message)))


class _Run:
    """One run under way."""

    def __init__(self, setup: LoopSetup, transcript: list[AgentMessage], control: RunControl) -> None:
        self.setup = setup
        self.emit = setup.emit
        self.transcript = transcript
        self.control = control
        self.signal = control.signal
        self.steps = 0
        self.open_calls: deque[ToolCall] = deque()
        self.cancelled: asyncio.CancelledError | None = None
        # What the model sees is copied once a run, not once a request: long runs would take quadratic time.
        # A model that edits a message in place spoils what it is shown later in this run, no more.
        self.shown = clone(transcript)

    async def turns(self, prompt: UserMessage) -> RunReason:
        """Go from turn to turn until there is a reason to end."""
        message = await self.turn([prompt])
        while (reason := self.reason_to_end(message)) is None:
            idle = not tool_calls_of(message) and not self.setup.steers
            message = await self.turn([self.setup.follow_ups.popleft()] if idle else [])
        return reason

    async def turn(self, said: list[UserMessage]) -> AssistantMessage:
        """Go once from what is said to the model's message and the results of its calls."""
        step = self.steps + 1
        self.emit(TurnStart(step))
        for waiting in said:
            self.join(waiting)
        for _ in range(len(self.setup.steers)):
            self.join(self.setup.steers.popleft())
        message = await self.request()
        self.join(message)
        while self.open_calls:
            self.join(await self.answer(self.open_calls[0], message))
        self.emit(TurnEnd(step))
        return message

    def join(self, message: AgentMessage) -> None:
        """Let a message become part of the transcript."""
        self.transcript.append(message)
        self.shown.append(clone(message))
        if isinstance(message, AssistantMessage):
            self.open_calls.extend(tool_calls_of(message))
        elif isinstance(message, ToolResultMessage):
            self.open_calls.popleft()
        self.emit(MessageEnd(message))

    def reason_to_end(self, message: AssistantMessage) -> RunReason | None:
        """Judge the state after a turn."""
        if message.stop_reason == "error" or message.stop_reason == "aborted":
            return message.stop_reason
        if self.signal.aborted:
            return "aborted"
        if not (tool_calls_of(message) or self.setup.steers or self.setup.follow_ups):
            return "stop"
        return "max_steps" if self.steps >= self.setup.max_steps else None

    async def request(self) -> AssistantMessage:
        """Ask the model; where no whole message comes of it, write the one that closes the turn."""
        heard: list[str] = []
        task = await self.settle(self.ask(heard))
        if task is None or self.signal.aborted:
            return _closing(heard, "aborted", str(AbortError(self.signal.reason)))
        failure = _failure_of(task)
        return _closing(heard, "error", failure) if failure else task.result()

    async def ask(self, heard: list[str]) -> AssistantMessage:
        """Make one request and read it to its end; the text so far is in `heard` whatever happens."""
        self.signal.throw_if_aborted()
        context = ModelContext(list(self.shown), self.setup.system_prompt, self.setup.schemas())
        self.steps += 1
        stream = self.setup.model.stream(context, self.signal)
        if inspect.iscoroutine(stream):
            stream.close()
            raise ModelProtocolError("stream() gave a coroutine, not an asynchronous iterator")
        message = detached(await collect(self.listen(stream, heard)))
        if not isinstance(message, AssistantMessage):
            raise ModelProtocolError(f"a model can't close with a message of role {message.role!r}")
        return message

    async def listen(self, stream: AsyncIterator[ModelEvent], heard: list[str]) -> AsyncIterator[ModelEvent]:
        """Hand the events to `collect`, which checks them, and then to the listeners."""
        try:
            async for event in stream:
                self.signal.throw_if_aborted()
                if isinstance(event, TextDelta) and not isinstance(event.text, str):
                    raise ModelProtocolError("the text of a TextDelta is no text")
                yield clone(event) if isinstance(event, ToolCallDelta) else event
                if isinstance(event, TextDelta):
                    heard.append(event.text)
                if not isinstance(event, MessageDone):
                    self.emit(MessageUpdate(event))
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()

    async def answer(self, call: ToolCall, message: AssistantMessage) -> ToolResultMessage:
        """Give a call its one result, by running it unless something speaks against that."""
        if self.signal.aborted:
            return error_result(call, f"Not run: {AbortError(self.signal.reason)}")
        if message.stop_reason == "error" or message.stop_reason == "aborted":
            return error_result(call, f"Not run: its message ended with {message.stop_reason!r}")
        if self.setup.steers:
            return error_result(call, "Not run: the user said something else first")
        self.emit(ToolStart(call))
        task = await self.settle(self.execute(call))
        failure = _failure_of(task) if task else f"Stopped waiting: {AbortError(self.signal.reason)}"
        result = task.result() if task and not failure else error_result(call, failure)
        self.emit(ToolEnd(call.id, result))
        return result

    async def execute(self, call: ToolCall) -> ToolResultMessage:
        """Hand a copy of the call to the executor and check what comes back."""
        result = detached(await self.setup.execute(clone(call), ToolContext(self.signal)))
        paired = isinstance(result, ToolResultMessage) and (result.tool_call_id, result.tool_name)
        if paired != (call.id, call.name):
            raise ValueError("the tool executor gave back no result of this call")
        return result

    async def settle(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T] | None:
        """Run work as a task and return it done, or `None` where an abort or a cancelled caller comes first.

        Work that heeds the signal may still end by itself; then it is cancelled, and then left alone.
        """
        task = asyncio.create_task(work)
        _TASKS.add(task)
        task.add_done_callback(_forget)
        either: set[asyncio.Future[Any]] = {task, self.control.stopped}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            self.cancelled = error
            self.control.abort("the task that waited for the run was cancelled")
        if await self.ends_soon(task):
            return task
        task.cancel()
        await self.ends_soon(task)
        return None

    async def ends_soon(self, task: asyncio.Task[Any]) -> bool:
        """Give a task some turns of the event loop; a cancelled caller has to wait them out, too."""
        for _ in range(_PATIENCE):
            if task.done():
                break
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                self.cancelled = error
        return task.done()

    def answer_open_calls(self) -> None:
        """Write the results that a run which was torn off owes."""
        for call in self.open_calls:
            self.transcript.append(error_result(call, "Not run: the run was torn off"))


def _closing(heard: list[str], stop_reason: Literal["error", "aborted"], why: str) -> AssistantMessage:
    text = "".join(heard)
    return AssistantMessage([TextContent(text)] if text else [], stop_reason, now_ms(), why)


def _failure_of(task: asyncio.Task[Any]) -> str:
    """Say in words of what a finished task failed; nothing where it did not."""
    if task.cancelled():
        return "CancelledError: cancelled by itself"
    error = task.exception()
    try:
        return f"{type(error).__name__}: {error}" if error else ""
    except Exception:  # noqa: BLE001 - an error that can't be printed has a name all the same
        return type(error).__name__


def _forget(task: asyncio.Task[Any]) -> None:
    """Let go of a task; looking at its exception keeps asyncio from reporting it as never retrieved."""
    _TASKS.discard(task)
    if not task.cancelled():
        task.exception()
