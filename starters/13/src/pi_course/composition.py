"""The composition root: which leaf is active, how the parts are wired, and when a prompt is done."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pi_course.agent import AgentListener, AgentState
from pi_course.events import AgentRunResult
from pi_course.messages import AgentMessage, UserMessage, now_ms
from pi_course.model import Model
from pi_course.resources import ExtensionHost, ResourceCatalog
from pi_course.session import SessionEntry, SessionStore
from pi_course.tools import ToolRegistry


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

    # TODO(13.1): the constructor is yours.

    def get_state(self) -> AgentState:
        """Return a deep copy of the Agent's state."""
        # TODO(13.1): hand it on to the Agent.
        raise NotImplementedError("Lab 13.1 createRuntime 尚未实现")

    def subscribe(self, listener: AgentListener) -> Callable[[], None]:
        """Call the listener with every event; returns what ends that."""
        # TODO(13.1): hand it on to the Agent.
        raise NotImplementedError("Lab 13.1 createRuntime 尚未实现")

    def steer(self, text: str) -> None:
        """Deliver the text before the next model request."""
        # TODO(13.1): hand it on to the Agent.
        raise NotImplementedError("Lab 13.1 createRuntime 尚未实现")

    def follow_up(self, text: str) -> None:
        """Deliver the text when the run would stop."""
        # TODO(13.1): hand it on to the Agent.
        raise NotImplementedError("Lab 13.1 createRuntime 尚未实现")

    def abort(self, reason: object = None) -> None:
        """Stop the current run; what is queued behind it goes on."""
        # TODO(13.1): hand it on to the Agent.
        raise NotImplementedError("Lab 13.1 createRuntime 尚未实现")


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
        So does one RuntimeError where what runs the prompt is cancelled from outside, even before its first
        step, by a program that cancels every task or a loop that shuts down.
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
    # TODO(13.2): project every request.
    raise NotImplementedError("Lab 13.2 createContextProjectingModel 尚未实现")


class RuntimeImpl:
    """The Runtime that `create_runtime` returns."""

    # TODO(13.1): a constructor, which is yours, and what `Runtime` asks for besides these three methods.

    async def prompt(self, value: str | UserMessage) -> AgentRunResult:
        """See `Runtime.prompt`."""
        # TODO(13.3): run the Agent, then let the store have what is new.
        raise NotImplementedError("Lab 13.3 Runtime prompt/flush/dispose 尚未实现")

    async def flush(self) -> None:
        """See `Runtime.flush`."""
        # TODO(13.3): wait for the queue.
        raise NotImplementedError("Lab 13.3 Runtime prompt/flush/dispose 尚未实现")

    def dispose(self) -> Awaitable[None]:
        """See `Runtime.dispose`."""
        # TODO(13.3): close the entry, then wait for the queue.
        raise NotImplementedError("Lab 13.3 Runtime prompt/flush/dispose 尚未实现")


async def create_runtime(config: RuntimeConfig, deps: RuntimeDeps) -> Runtime:
    """Restore the chosen branch of the session and wire one Agent to it.

    In Lab 13.1 the Agent gets a deep copy of the branch's messages, and the Runtime the very parts of `deps`.
    In Lab 13.3 its requests are projected (`config.context`), its system prompt is the configured one, a
    blank line and the resources' (None where both are empty), and the extensions wrap its tool calls.

    Raises SessionTreeError where `active_leaf_id` is not one of the entries, or None although there are some.
    (Chapter 13, Labs 13.1 and 13.3)
    """
    # TODO(13.1): the branch, one Agent, the Runtime around it.
    # TODO(13.3): the model, the system prompt and the tool executor that the Agent really works with.
    raise NotImplementedError("Lab 13.1 createRuntime 尚未实现")


async def run_mode(runtime: Runtime, mode: str, prompt: str, io: ModeIO) -> AgentRunResult:
    """Prompt the runtime once, write the outcome as the mode has it, and return a deep copy of the result.

    "interactive" and "print" write the last assistant's text as it is ("" where there is none); "json" writes
    one compact line {"reason", "steps", "messages"}, messages as `message_to_json` has them, non-ASCII
    unescaped, with a newline at its end. Raises ValueError for any other mode, before the prompt. What
    `io.write` raises comes out as it is; the session keeps what it has accepted. (Chapter 13, Lab 13.4)
    """
    # TODO(13.4): check the mode, prompt once, write once.
    raise NotImplementedError("Lab 13.4 runMode 尚未实现")
