"""The agent: one conversation, one run at a time, and the ways to watch and steer it from outside."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TypeAlias

from pi_course.events import AgentEvent, AgentRunResult
from pi_course.loop import LoopSetup, RunControl, detached, run_agent_loop
from pi_course.messages import AgentMessage, ToolCall, ToolResultMessage, UserMessage, user_message
from pi_course.model import Model
from pi_course.schema import ToolContext
from pi_course.tools import ToolExecutor, ToolRegistry, execute_tool_call
from pi_course.values import clone

AgentListener: TypeAlias = Callable[[AgentEvent], object]

_log = logging.getLogger(__name__)


class AgentBusyError(Exception):
    """The agent is in a run already: steer it, queue a follow-up, or wait."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """A look at an agent: its transcript, as a deep copy, and whether a run is under way."""

    messages: list[AgentMessage]
    running: bool


class Agent:
    """A conversation with one model that may use tools. (Chapter 09)

    An agent is bound to no event loop; `steer`, `follow_up` and `abort` return at once, and may be called
    from listeners and tools.
    """

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolRegistry,
        tool_executor: ToolExecutor | None = None,
        system_prompt: str | None = None,
        max_steps: int = 16,
        initial_messages: Sequence[AgentMessage] = (),
    ) -> None:
        """Check the parts; `max_steps` bounds the model requests of one run. TypeError, ValueError.

        The transcript begins with a deep copy of `initial_messages`.
        """
        if not callable(getattr(model, "stream", None)):
            raise TypeError(f"model needs a stream method, which {type(model).__name__} has not")
        if not isinstance(tools, ToolRegistry):
            raise TypeError(f"tools is a ToolRegistry, not {type(tools).__name__}")
        if not (tool_executor is None or callable(tool_executor)):
            raise TypeError(f"tool_executor is a callable, not {type(tool_executor).__name__}")
        if not (system_prompt is None or isinstance(system_prompt, str)):
            raise TypeError(f"system_prompt is text, not {type(system_prompt).__name__}")
        if not isinstance(max_steps, int) or isinstance(max_steps, bool):
            raise TypeError(f"max_steps is an integer, not {type(max_steps).__name__}")
        if max_steps < 1:
            raise ValueError(f"max_steps is at least 1, not {max_steps}")
        self._messages: list[AgentMessage] = clone(list(initial_messages))
        self._listeners: dict[object, AgentListener] = {}
        self._control: RunControl | None = None
        self._setup = LoopSetup(
            model=model,
            execute=tool_executor or _core_executor(tools),
            schemas=tools.schemas,
            system_prompt=system_prompt,
            max_steps=max_steps,
            emit=self._emit,
            steers=deque(),
            follow_ups=deque(),
        )

    async def prompt(self, value: str | UserMessage) -> AgentRunResult:
        """Say something and run until the model has nothing more to do.

        How the run ended is in the result's `reason`: a failing model or tool raises nothing. AgentBusyError
        while another run is under way, TypeError or ValueError for what is no user message. When the awaiting
        task is cancelled, the run is wound up as by `abort`, and CancelledError comes out.
        """
        if self._control is not None:
            raise AgentBusyError("a run is under way")
        if not isinstance(value, str | UserMessage):
            raise TypeError(f"a prompt is text or a UserMessage, not {type(value).__name__}")
        message = user_message(value) if isinstance(value, str) else detached(value)
        self._control = RunControl()
        try:
            return await run_agent_loop(self._setup, self._messages, message, self._control)
        finally:
            self._control = None

    def steer(self, text: str) -> None:
        """Say something before the next model request; the turn's calls not yet begun are not run."""
        self._setup.steers.append(_said(text))

    def follow_up(self, text: str) -> None:
        """Say something once the run would stop; one follow-up at a time, each with a turn of its own."""
        self._setup.follow_ups.append(_said(text))

    def abort(self, reason: object = None) -> None:
        """End the present run, if there is one; what is queued waits for the next."""
        if self._control is not None:
            self._control.abort(reason)

    def get_state(self) -> AgentState:
        """Give a deep copy of the transcript as it stands."""
        return AgentState(clone(self._messages), self._control is not None)

    def subscribe(self, listener: AgentListener) -> Callable[[], None]:
        """Call a plain callable with its own copy of every event; what it raises is logged, no more."""
        if not callable(listener) or iscoroutinefunction(listener):
            raise TypeError("a listener is a plain callable")
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def _emit(self, event: AgentEvent) -> None:
        for token, listener in list(self._listeners.items()):
            if token not in self._listeners:  # unsubscribed by a listener before it
                continue
            try:
                listener(clone(event))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # noqa: BLE001 - a stray CancelledError of a listener is its own, too
                _log.exception("a listener failed at %s", type(event).__name__)


def _core_executor(tools: ToolRegistry) -> ToolExecutor:
    async def execute(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        return await execute_tool_call(call, tools, context)

    return execute


def _said(text: str) -> UserMessage:
    if not isinstance(text, str):
        raise TypeError(f"only text can be queued, not {type(text).__name__}")
    return user_message(text)
