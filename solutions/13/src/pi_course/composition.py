"""The composition root: which leaf is active, how the parts are wired, and when a prompt is done.

Decision: each accepted prompt runs in a task of its own, one at a time, because a cancelled caller must
lose its wait and nothing else; not in the caller's task, which dies with it, and not in one that idles.
"""

import asyncio
import json
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from pi_course.agent import Agent, AgentListener, AgentState
from pi_course.context import build_context
from pi_course.events import AgentRunResult
from pi_course.messages import (
    AgentMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    message_from_json,
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


# --- Lab 13.2: what the model sees ---


def _temporary_entries(path: Sequence[SessionEntry], suffix: Sequence[AgentMessage]) -> list[SessionEntry]:
    """Chain the suffix to the path's leaf under ids that no entry of the path has."""
    taken = {entry.id for entry in path}
    parent_id = path[-1].id if path else None
    entries: list[SessionEntry] = []
    for index, message in enumerate(suffix):
        entry_id = f"__runtime_context_{index}"
        while entry_id in taken:
            entry_id = f"_{entry_id}"
        entries.append(MessageEntry(entry_id, parent_id, message.timestamp, message))
        parent_id = entry_id
    return entries


class _ContextProjectingModel:
    """Asks the inner model with what `build_context` makes of the latest path and the unpersisted suffix."""

    def __init__(
        self,
        inner: Model,
        system_prompt: str | None,
        budget: ContextBudget,
        get_snapshot: Callable[[], ContextProjectionSnapshot],
    ) -> None:
        self._inner = inner
        self._system_prompt = system_prompt
        self._budget = budget
        self._get_snapshot = get_snapshot

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        snapshot = self._get_snapshot()
        count = snapshot.persisted_message_count
        if type(count) is not int or not 0 <= count <= len(context.messages):
            raise ValueError(
                f"persisted_message_count must be an integer from 0 to {len(context.messages)}, not {count!r}"
            )
        suffix = _temporary_entries(snapshot.active_path, context.messages[count:])
        projection = build_context(
            [*snapshot.active_path, *suffix],
            max_tokens=self._budget.total,
            estimate_tokens=self._budget.estimate_tokens,
            system_prompt=self._system_prompt,
            reserved_output=self._budget.reserved_output,
            safety_margin=self._budget.safety_margin,
        )
        projected = ModelContext(projection.messages, projection.system_prompt, clone(context.tools))
        return self._inner.stream(projected, signal)


def create_context_projecting_model(
    inner: Model,
    *,
    system_prompt: str | None,
    context: ContextBudget,
    get_snapshot: Callable[[], ContextProjectionSnapshot],
) -> Model:
    """Return a model that projects every request into the budget before the inner model sees it.

    One thing is the caller's to ensure: the first `persisted_message_count` messages of a request are the
    messages of `active_path`. Only the count's bounds are checked; a bad count is ValueError.
    (Chapter 13, Lab 13.2)
    """
    return _ContextProjectingModel(inner, system_prompt, context, get_snapshot)


# --- Lab 13.3: one queue, and what ends it ---


class _Failure:
    """What ended an operation, raised from the traceback it came with: ten thousand raises don't grow it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.traceback = error.__traceback__

    def throw(self) -> NoReturn:
        raise self.error.with_traceback(self.traceback)


def _cut_off() -> _Failure:
    """What becomes of prompts whose event loop ended: not CancelledError, which nobody would notice."""
    return _Failure(RuntimeError("the event loop ended before the prompt did: create a new runtime"))


class _Operation:
    """One accepted prompt; its outcome is there once `settled` is set."""

    __slots__ = ("context", "outcome", "settled", "value")

    outcome: AgentRunResult | _Failure

    def __init__(self, value: str | UserMessage) -> None:
        self.value = value
        self.context = copy_context()
        self.settled = asyncio.Event()


class _OperationQueue:
    """Accepted operations, the first of them running; the first failure ends the queue for ever."""

    def __init__(self, run: Callable[[str | UserMessage], Coroutine[Any, Any, AgentRunResult]]) -> None:
        self._run = run
        self._accepted: deque[_Operation] = deque()
        self._task: asyncio.Task[None] | None = None
        self._poison: _Failure | None = None

    async def perform(self, value: str | UserMessage) -> AgentRunResult:
        """Accept the operation and wait for its outcome; a cancelled wait leaves the operation alone."""
        self.check()
        operation = _Operation(value)
        self._accepted.append(operation)
        if len(self._accepted) == 1:
            self._start_first()
        await operation.settled.wait()
        if isinstance(operation.outcome, _Failure):
            operation.outcome.throw()
        return operation.outcome

    async def drained(self) -> None:
        """Wait until all that has been accepted so far is settled."""
        self._give_up_stranded()
        if self._accepted:
            await self._accepted[-1].settled.wait()

    def check(self) -> None:
        """Raise what ended the queue, if anything did."""
        self._give_up_stranded()
        if self._poison is not None:
            self._poison.throw()

    def _start_first(self) -> None:
        operation = self._accepted[0]
        self._task = asyncio.create_task(self._perform(operation), context=operation.context)
        self._task.add_done_callback(self._settle_first)

    async def _perform(self, operation: _Operation) -> None:
        try:
            operation.outcome = await self._run(operation.value)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            operation.outcome = _Failure(error)  # as it is, to be raised where the prompt is awaited

    def _settle_first(self, task: asyncio.Task[None]) -> None:
        # Nobody but a loop that shuts down cancels this task, and then nothing must be started any more.
        outcome = _cut_off() if task.cancelled() else self._accepted[0].outcome
        if isinstance(outcome, _Failure):
            self._end(outcome)
            return
        self._accepted.popleft().settled.set()
        if self._accepted:
            self._start_first()

    def _end(self, failure: _Failure) -> None:
        """Give the failure to the operation that runs, to those behind it, and to all that come later."""
        self._poison = failure
        for operation in self._accepted:
            operation.outcome = failure
            operation.settled.set()
        self._accepted.clear()

    def _give_up_stranded(self) -> None:
        """End the queue where the event loop was closed under a running operation: it can never finish."""
        if self._accepted and self._task is not None and self._task.get_loop().is_closed():
            self._accepted.clear()
            self._end(_cut_off())


def _is_being_cancelled() -> bool:
    """Tell a cancelled task from one that met somebody's own CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Drained:
    """What `dispose` returns: may be awaited many times, by any task, or never."""

    def __init__(self, wait: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._wait = wait

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()


def _detached(value: str | UserMessage) -> str | UserMessage:
    """Copy a prompt by way of its wire form: what could not be stored is refused at the door."""
    if isinstance(value, str):
        return str(value)
    message = message_from_json(message_to_json(value))
    if not isinstance(message, UserMessage):
        raise TypeError(f"a prompt is text or a user message, not one of role {message.role!r}")
    return message


class RuntimeImpl:
    """The Runtime that `create_runtime` returns.

    `path` says all there is to know of the commit: its last entry is the active leaf, its messages are the
    persisted ones. Only `_persist` lets it grow, as the store accepts entries; every model request reads it.
    """

    def __init__(self, agent: Agent, path: list[SessionEntry], deps: RuntimeDeps) -> None:
        self.control = RuntimeControl(agent)
        self.session = deps.session
        self.resources = deps.resources
        self.extensions = deps.extension_host
        self._agent = agent
        self._path = path
        self._deps = deps
        self._queue = _OperationQueue(self._run_and_persist)
        self._drained = _Drained(self._queue.drained)
        self._disposed = False

    async def prompt(self, value: str | UserMessage) -> AgentRunResult:
        """See `Runtime.prompt`."""
        if self._disposed:
            raise RuntimeDisposedError("the runtime was disposed: create a new one to go on")
        return await self._queue.perform(_detached(value))

    async def flush(self) -> None:
        """See `Runtime.flush`."""
        await self._queue.drained()
        self._queue.check()

    def dispose(self) -> Awaitable[None]:
        """See `Runtime.dispose`."""
        self._disposed = True
        return self._drained

    async def _run_and_persist(self, value: str | UserMessage) -> AgentRunResult:
        before_count = len(_messages_on(self._path))  # the Agent's transcript is just these, until it runs
        result = await self._agent.prompt(value)
        await self._persist(result.messages[before_count:])
        return result

    async def _persist(self, suffix: Sequence[AgentMessage]) -> None:
        for message in suffix:
            leaf_id = self._path[-1].id if self._path else None
            entry = MessageEntry(self._deps.create_id(), leaf_id, self._deps.now(), clone(message))
            await self._deps.session.append(clone(entry))
            self._path.append(entry)


# --- Labs 13.1 and 13.3: the wiring ---


def _select_path(entries: list[SessionEntry], leaf_id: str | None) -> list[SessionEntry]:
    if leaf_id is not None:
        return path_to(entries, leaf_id)
    if entries:
        raise SessionTreeError("the session has entries, so active_leaf_id must name one of them, not None")
    return []


def _messages_on(path: Sequence[SessionEntry]) -> list[AgentMessage]:
    return [entry.message for entry in path if isinstance(entry, MessageEntry)]


def _join_system_prompt(base: str | None, resources: ResourceCatalog) -> str | None:
    parts = [base, format_resource_context(resources, [])]
    return "\n\n".join(part for part in parts if part) or None


def _tool_executor(deps: RuntimeDeps) -> ToolExecutor:
    async def core(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        return await execute_tool_call(call, deps.tools, context)

    return core if deps.extension_host is None else deps.extension_host.wrap_executor(core)


async def create_runtime(config: RuntimeConfig, deps: RuntimeDeps) -> Runtime:
    """Restore the chosen branch of the session and wire one Agent to it.

    Raises SessionTreeError where `active_leaf_id` is not one of the entries, or None although there are some.
    (Chapter 13, Labs 13.1 and 13.3)
    """
    path = clone(_select_path(await deps.session.entries(), config.active_leaf_id))
    system_prompt = _join_system_prompt(config.system_prompt, deps.resources)
    model = create_context_projecting_model(
        deps.model,
        system_prompt=system_prompt,
        context=config.context,
        get_snapshot=lambda: ContextProjectionSnapshot(tuple(path), len(_messages_on(path))),
    )
    agent = Agent(
        model=model,
        tools=deps.tools,
        tool_executor=_tool_executor(deps),
        max_steps=config.max_steps,
        initial_messages=_messages_on(path),
    )
    return RuntimeImpl(agent, path, deps)


# --- Lab 13.4: output ---


def _final_assistant_text(messages: Sequence[AgentMessage]) -> str:
    for message in reversed(messages):
        if message.role == "assistant":
            return text_of(message)
    return ""


def _json_line(result: AgentRunResult) -> str:
    record = {
        "reason": result.reason,
        "steps": result.steps,
        "messages": [message_to_json(message) for message in result.messages],
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


async def run_mode(runtime: Runtime, mode: str, prompt: str, io: ModeIO) -> AgentRunResult:
    """Prompt the runtime once, write the outcome as the mode has it, and return a deep copy of the result.

    "interactive" and "print" write the last assistant's text, "json" one line of reason, steps, messages.
    Raises ValueError for any other mode, before the prompt. What `io.write` raises comes out as it is; the
    session keeps what it has accepted. (Chapter 13, Lab 13.4)
    """
    if mode not in ("interactive", "print", "json"):
        raise ValueError(f"unknown mode {mode!r}: expected interactive, print or json")
    result = clone(await runtime.prompt(prompt))
    await io.write(_json_line(result) if mode == "json" else _final_assistant_text(result.messages))
    return result
