"""The composition root: which leaf is active, how the parts are wired, and when a prompt is done."""

import asyncio
import contextlib
import contextvars
import json
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Protocol, TypeAlias

from pi_course.agent import Agent, AgentListener, AgentState
from pi_course.context import build_context
from pi_course.events import AgentRunResult
from pi_course.loop import detached
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    message_to_json,
    now_ms,
    text_of,
)
from pi_course.model import Model, ModelContext, ModelEvent
from pi_course.resources import ExtensionHost, ResourceCatalog, format_resource_context
from pi_course.schema import ToolContext
from pi_course.session import MessageEntry, SessionEntry, SessionStore, SessionTreeError, path_to
from pi_course.signals import AbortSignal
from pi_course.tools import ToolExecutor, ToolRegistry, execute_tool_call
from pi_course.values import clone


class RuntimeDisposedError(Exception):
    """A prompt arrived after `dispose()` had closed the entry."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """How many tokens a model request may cost, and how they are estimated (see `build_context`)."""

    total: int
    estimate_tokens: Callable[[AgentMessage | str], int]
    reserved_output: int = 0
    safety_margin: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """What the caller decides; `active_leaf_id` is None for a new session and never guessed."""

    active_leaf_id: str | None
    context: ContextBudget
    system_prompt: str | None = None
    max_steps: int = 16


@dataclass(frozen=True, slots=True)
class RuntimeDeps:
    """The parts the caller hands over; `now` gives milliseconds since the Unix epoch."""

    model: Model
    tools: ToolRegistry
    session: SessionStore
    resources: ResourceCatalog
    extension_host: ExtensionHost | None = None
    create_id: Callable[[], str] = field(default=lambda: str(uuid.uuid4()))
    now: Callable[[], int] = now_ms


@dataclass(frozen=True, slots=True)
class ContextProjectionSnapshot:
    """The path the store has accepted, root first, and how many of its entries are messages."""

    active_path: Sequence[SessionEntry]
    persisted_message_count: int


class ModeIO(Protocol):
    """Where a mode writes."""

    async def write(self, text: str) -> None:
        """Write the whole text, or raise."""
        ...


class RuntimeControl:
    """Watches and steers the runtime's one Agent; a new request can only enter by `Runtime.prompt`."""

    __slots__ = ("_agent",)

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def get_state(self) -> AgentState:
        """Return a deep copy of the Agent's state."""
        return self._agent.get_state()

    def subscribe(self, listener: AgentListener) -> Callable[[], None]:
        """Call the listener with every event; returns what ends that."""
        return self._agent.subscribe(listener)

    def steer(self, text: str) -> None:
        """Deliver the text before the next model request."""
        self._agent.steer(text)

    def follow_up(self, text: str) -> None:
        """Deliver the text when the run would stop."""
        self._agent.follow_up(text)

    def abort(self, reason: object = None) -> None:
        """Stop the current run; what is queued behind it goes on."""
        self._agent.abort(reason)


class Runtime(Protocol):
    """One session, one Agent, one queue of prompts. (Chapter 13, Labs 13.1 and 13.3)

    A tool that awaits `prompt()`, `flush()` or `dispose()` of the runtime it runs in waits for itself and
    never returns: not supported.
    """

    @property
    def control(self) -> RuntimeControl:
        """The controls of the one Agent."""
        ...

    @property
    def session(self) -> SessionStore:
        """The store that was given."""
        ...

    @property
    def resources(self) -> ResourceCatalog:
        """The catalog that was given."""
        ...

    @property
    def extensions(self) -> ExtensionHost | None:
        """The extension host that was given."""
        ...

    async def prompt(self, value: str | UserMessage) -> AgentRunResult:
        """Run the Agent and return once the store has accepted every new message.

        A prompt is accepted when its coroutine first runs; accepted prompts run one at a time, in order.
        Cancelling the caller does not cancel an accepted prompt; `control.abort()` stops the one that runs.
        Raises RuntimeDisposedError after `dispose()`, and the very error that ended the runtime if one did:
        whatever persisting raises does, and then no prompt, waiting or new, reaches model or store any more.
        """
        ...

    async def flush(self) -> None:
        """Wait for the prompts accepted so far, then raise the error that ended the runtime, if one did."""
        ...

    def dispose(self) -> Awaitable[None]:
        """Let no prompt in from this call on; what it returns waits for those accepted before.

        May be called, and its answer awaited, any number of times and by any task; a failed prompt does not
        make it fail.
        """
        ...


def create_context_projecting_model(
    inner: Model,
    *,
    system_prompt: str | None,
    context: ContextBudget,
    get_snapshot: Callable[[], ContextProjectionSnapshot],
) -> Model:
    """Return a model that projects every request into the budget before the inner model sees it.

    Each request asks `get_snapshot` anew. The first `persisted_message_count` messages of a request are on
    `active_path`, which the caller ensures; those after them are not stored yet, and join the path for this
    one request under ids `__runtime_context_0`, `__runtime_context_1` and so on, with more `_` in front while
    an entry of the path has that id. `build_context` decides what of all this the inner model gets, and which
    system prompt; beside that it gets a copy of the tools, and the very signal.

    Raises ValueError for a count that is no integer or out of bounds, before the inner model is asked.
    (Chapter 13, Lab 13.2)
    """
    budget = context

    class Projecting:
        def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
            snapshot = get_snapshot()
            count = snapshot.persisted_message_count
            if not isinstance(count, int) or isinstance(count, bool):
                raise ValueError(f"persisted_message_count is an integer, not {count!r}")
            if not 0 <= count <= len(context.messages):
                raise ValueError(f"{count} of {len(context.messages)} messages can't be stored already")
            shown = build_context(
                [*snapshot.active_path, *_temporary(snapshot.active_path, context.messages[count:])],
                max_tokens=budget.total,
                estimate_tokens=budget.estimate_tokens,
                system_prompt=system_prompt,
                reserved_output=budget.reserved_output,
                safety_margin=budget.safety_margin,
            )
            projected = ModelContext(shown.messages, shown.system_prompt, clone(context.tools))
            return inner.stream(projected, signal)

    return Projecting()


def _temporary(path: Sequence[SessionEntry], suffix: Sequence[AgentMessage]) -> list[SessionEntry]:
    """Chain messages that no store has yet to the end of a path, under ids that the path has not."""
    taken = {entry.id for entry in path}
    leaf = path[-1].id if path else None
    chained: list[SessionEntry] = []
    for index, message in enumerate(suffix):
        name = f"__runtime_context_{index}"
        while name in taken:
            name = f"_{name}"
        chained.append(MessageEntry(name, leaf, message.timestamp, message))
        leaf = name
    return chained


# Gives or raises what came of an operation. A thunk, so that no future ever holds an exception: none can then
# be "never retrieved", and CancelledError, SystemExit and their like reach the caller as any other does.
_Outcome: TypeAlias = Callable[[], AgentRunResult]
# Runs one prompt and commits it; what this itself raises, beside its outcome, ends the lane.
_Operation: TypeAlias = Callable[[], Coroutine[Any, Any, _Outcome]]

_OPERATIONS: set[asyncio.Task[None]] = set()  # asyncio itself keeps only weak references to tasks


@dataclass(frozen=True, slots=True, eq=False)
class _Ticket:
    """A place in the lane: an operation, or without one somebody who waits until those before it are done."""

    called: asyncio.Future[_Outcome]
    operation: _Operation | None
    context: contextvars.Context


class _Lane:
    """Takes tickets and runs their operations one by one, each in a task of its own.

    There is no worker: an operation that ends starts the next one itself, and with nothing to do there is
    no task and no event loop. Once an operation has raised, all who are waiting and all who come get that.
    """

    def __init__(self) -> None:
        self._tickets: deque[_Ticket] = deque()
        self._work: Coroutine[Any, Any, None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._poison: BaseException | None = None
        self._raised_at: TracebackType | None = None

    async def run(self, operation: _Operation) -> AgentRunResult:
        """Queue an operation, before anything is awaited, and give its outcome.

        A cancelled caller cancels the future of its ticket, which nobody but the caller looks at.
        """
        outcome = await self._queue(operation)
        return outcome()

    async def settled(self) -> None:
        """Wait until the operations queued so far have ended, however they did."""
        self._watch_loop()
        if self._task is not None:
            await self._queue(None)

    def check(self) -> None:
        """Raise what ended the lane."""
        self._watch_loop()
        if self._poison is not None:
            self._refuse()

    def _queue(self, operation: _Operation | None) -> asyncio.Future[_Outcome]:
        called: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self._tickets.append(_Ticket(called, operation, contextvars.copy_context()))
        if self._task is None:
            self._call_next()
        return called

    def _call_next(self) -> None:
        """Start the next operation; on the way to it, call those who only wait or, poisoned, everybody."""
        self._task = self._work = None
        while self._tickets:
            ticket = self._tickets.popleft()
            if ticket.operation is None or self._poison is not None:
                _call(ticket, self._refuse)  # who only waits doesn't ask for the outcome
                continue
            self._work = self._serve(ticket, ticket.operation)
            self._task = ticket.called.get_loop().create_task(self._work, context=ticket.context)
            _OPERATIONS.add(self._task)
            self._task.add_done_callback(partial(self._leave, ticket))
            return

    async def _serve(self, ticket: _Ticket, operation: _Operation) -> None:
        try:
            outcome = await operation()
        except BaseException as error:  # noqa: BLE001 - to the callers, never out of a task into the event loop
            self._end(_loop_ended(error) if self._is_torn_off(error) else error)
            outcome = self._refuse
        _call(ticket, outcome)
        self._call_next()

    def _leave(self, ticket: _Ticket, task: asyncio.Task[None]) -> None:
        _OPERATIONS.discard(task)
        if self._task is task:  # cancelled before its first step, so that `_serve` couldn't call anybody
            self._end(_loop_ended(None))
            _call(ticket, self._refuse)
            self._call_next()

    def _is_torn_off(self, error: BaseException) -> bool:
        """Tell the end of the event loop, which cancels or closes what runs in it, from an error in here."""
        if isinstance(error, GeneratorExit):
            return _current_task() is not self._task
        return isinstance(error, asyncio.CancelledError) and bool(self._task and self._task.cancelling())

    def _watch_loop(self) -> None:
        """Notice an operation that can't go on, or not here."""
        if self._task is None:
            return
        loop = self._task.get_loop()
        if not loop.is_closed():
            if loop is not asyncio.get_running_loop():
                raise RuntimeError("a prompt of this runtime is under way in another event loop")
            return
        work, task = self._work, self._task
        self._tickets.clear()
        self._end(_loop_ended(None))
        self._call_next()
        _OPERATIONS.discard(task)
        if work is not None:
            with contextlib.suppress(RuntimeError):  # it awaits on its way out, which nobody can grant it
                work.close()

    def _end(self, error: BaseException) -> None:
        if self._poison is None:
            self._poison, self._raised_at = error, error.__traceback__

    def _refuse(self) -> NoReturn:
        """Raise what ended the lane, its traceback as it was: raising one error often must not make it grow."""
        assert self._poison is not None
        raise self._poison.with_traceback(self._raised_at)


def _call(ticket: _Ticket, outcome: _Outcome) -> None:
    if not (ticket.called.done() or ticket.called.get_loop().is_closed()):
        ticket.called.set_result(outcome)


def _loop_ended(cause: BaseException | None) -> RuntimeError:
    error = RuntimeError("the event loop ended while a prompt of this runtime was under way")
    error.__cause__ = cause
    return error


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop is running
        return None


class _Ledger:
    """The active path and the store behind it, which grow together."""

    def __init__(self, path: list[SessionEntry], deps: RuntimeDeps) -> None:
        self._path = path
        self._deps = deps
        self.count = len(self.messages())

    def messages(self) -> list[AgentMessage]:
        """Give the path's messages, root first: its own objects."""
        return [entry.message for entry in self._path if isinstance(entry, MessageEntry)]

    def snapshot(self) -> ContextProjectionSnapshot:
        """Give the path as it is at this moment."""
        return ContextProjectionSnapshot(self._path, self.count)

    async def store(self, message: AgentMessage) -> None:
        """Let the store have one message behind the leaf; the leaf moves once that is done."""
        leaf = self._path[-1].id if self._path else None
        entry_id, timestamp = self._deps.create_id(), self._deps.now()
        await self._deps.session.append(MessageEntry(entry_id, leaf, timestamp, clone(message)))
        self._path.append(MessageEntry(entry_id, leaf, timestamp, clone(message)))
        self.count += 1


def _committing(
    agent: Agent, ledger: _Ledger
) -> Callable[[str | UserMessage], Coroutine[Any, Any, _Outcome]]:
    """Return what runs the agent, lets the store have what is new, and gives the outcome of the run."""

    async def operate(value: str | UserMessage) -> _Outcome:
        before_count = ledger.count  # as many as the agent has: all that earlier turns left is stored
        outcome: _Outcome
        try:
            result = await agent.prompt(value)
        except (asyncio.CancelledError, GeneratorExit):  # the event loop ends
            raise
        except BaseException as error:  # noqa: BLE001 - a listener's interrupt; what was said till then stays
            messages = agent.get_state().messages
            outcome = partial(_raise, error)
        else:
            messages = result.messages
            outcome = partial(_give, result)
        for message in messages[before_count:]:
            await ledger.store(message)
        return outcome

    return operate


def _give(result: AgentRunResult) -> AgentRunResult:
    return result


def _raise(error: BaseException) -> NoReturn:
    raise error


class _Settling:
    """Waits for the lane whenever it is awaited; made without an event loop, and nothing to lose if unused."""

    def __init__(self, lane: _Lane) -> None:
        self._lane = lane

    def __await__(self) -> Generator[Any, None, None]:
        return self._lane.settled().__await__()


class RuntimeImpl:
    """The Runtime that `create_runtime` returns."""

    def __init__(self, deps: RuntimeDeps, agent: Agent, ledger: _Ledger) -> None:
        self._deps = deps
        self._control = RuntimeControl(agent)
        self._operate = _committing(agent, ledger)
        self._lane = _Lane()
        self._disposed = False

    @property
    def control(self) -> RuntimeControl:
        """See `Runtime.control`."""
        return self._control

    @property
    def session(self) -> SessionStore:
        """See `Runtime.session`."""
        return self._deps.session

    @property
    def resources(self) -> ResourceCatalog:
        """See `Runtime.resources`."""
        return self._deps.resources

    @property
    def extensions(self) -> ExtensionHost | None:
        """See `Runtime.extensions`."""
        return self._deps.extension_host

    async def prompt(self, value: str | UserMessage) -> AgentRunResult:
        """See `Runtime.prompt`."""
        if self._disposed:
            raise RuntimeDisposedError("the runtime takes no more prompts")
        self._lane.check()
        return await self._lane.run(partial(self._operate, _accepted(value)))

    async def flush(self) -> None:
        """See `Runtime.flush`."""
        await self._lane.settled()
        self._lane.check()

    def dispose(self) -> Awaitable[None]:
        """See `Runtime.dispose`."""
        self._disposed = True
        return _Settling(self._lane)


def _accepted(value: str | UserMessage) -> str | UserMessage:
    """Detach what is to be said; TypeError or ValueError where it can't be."""
    if isinstance(value, str):
        return str.__str__(value)  # a plain string of a subclass's instance, too
    if not isinstance(value, UserMessage):
        raise TypeError(f"a prompt is text or a UserMessage, not {type(value).__name__}")
    return detached(value)


async def create_runtime(config: RuntimeConfig, deps: RuntimeDeps) -> Runtime:
    """Restore the chosen branch of the session and wire one Agent to it.

    In Lab 13.1 the Agent gets a deep copy of the branch's messages, and the Runtime the very parts of `deps`.
    In Lab 13.3 its requests are projected (`config.context`), its system prompt is the configured one, a
    blank line and the resources' (None where both are empty), and the extensions wrap its tool calls.

    Raises SessionTreeError where `active_leaf_id` is not one of the entries, or None although there are some.
    (Chapter 13, Labs 13.1 and 13.3)
    """
    ledger = _Ledger(await _restored(deps.session, config.active_leaf_id), deps)
    parts = (config.system_prompt, format_resource_context(deps.resources, []))
    system_prompt = "\n\n".join([part for part in parts if part]) or None
    agent = Agent(
        model=create_context_projecting_model(
            deps.model, system_prompt=system_prompt, context=config.context, get_snapshot=ledger.snapshot
        ),
        tools=deps.tools,
        tool_executor=_executor(deps),
        system_prompt=system_prompt,
        max_steps=config.max_steps,
        initial_messages=ledger.messages(),
    )
    return RuntimeImpl(deps, agent, ledger)


def _executor(deps: RuntimeDeps) -> ToolExecutor:
    async def core(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        return await execute_tool_call(call, deps.tools, context)

    return core if deps.extension_host is None else deps.extension_host.wrap_executor(core)


async def _restored(session: SessionStore, leaf_id: str | None) -> list[SessionEntry]:
    """Give an own copy of the branch that the caller names."""
    entries = await session.entries()
    if leaf_id is not None:
        return clone(path_to(entries, leaf_id))
    if entries:
        raise SessionTreeError("the session has entries: name the one to go on from")
    return []


async def run_mode(runtime: Runtime, mode: str, prompt: str, io: ModeIO) -> AgentRunResult:
    """Prompt the runtime once, write the outcome as the mode has it, and return a deep copy of the result.

    "interactive" and "print" write the last assistant's text as it is ("" where there is none); "json" writes
    one compact line {"reason", "steps", "messages"}, messages as `message_to_json` has them, non-ASCII
    unescaped, with a newline at its end. Raises ValueError for any other mode, before the prompt. What
    `io.write` raises comes out as it is; the session keeps what it has accepted. (Chapter 13, Lab 13.4)
    """
    if not (isinstance(mode, str) and mode in _FORMATS):
        raise ValueError(f"a mode is one of {', '.join(_FORMATS)}, not {mode!r}")
    result = await runtime.prompt(prompt)
    await io.write(_FORMATS[mode](result))
    return clone(result)


def _last_text(result: AgentRunResult) -> str:
    answers = (message for message in reversed(result.messages) if isinstance(message, AssistantMessage))
    return next(map(text_of, answers), "")


def _json_line(result: AgentRunResult) -> str:
    messages = [message_to_json(message) for message in result.messages]
    data = {"reason": result.reason, "steps": result.steps, "messages": messages}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


_FORMATS: dict[str, Callable[[AgentRunResult], str]] = {
    "interactive": _last_text,
    "print": _last_text,
    "json": _json_line,
}
