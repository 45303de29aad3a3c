"""Events: what a run tells those who watch it, and what it hands back at its end.

AgentStart
  TurnStart(1)
    MessageEnd(user)
    MessageUpdate(delta) …  MessageEnd(assistant)
    ToolStart  ToolEnd  MessageEnd(toolResult) …
  TurnEnd(1)
  …
AgentEnd(result)
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.messages import AgentMessage, ToolCall, ToolResultMessage
from pi_course.model import TextDelta, ToolCallDelta

RunReason: TypeAlias = Literal["stop", "max_steps", "aborted", "error"]


@dataclass(frozen=True, slots=True)
class AgentRunResult:
    """How a run ended: why, after how many model requests, and the whole transcript."""

    reason: RunReason
    steps: int
    messages: list[AgentMessage]


@dataclass(frozen=True, slots=True)
class AgentStart:
    """A run begins; the first event of every run."""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A turn begins: what waits to be said joins, then the model is asked; `step` counts from 1."""

    step: int


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """The assistant's message grows; it has not joined the transcript yet and may never do so."""

    delta: TextDelta | ToolCallDelta


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message, of whatever role, has joined the transcript."""

    message: AgentMessage


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A call is handed to the tool executor; a call that is answered without being run has no such event."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """The call that `ToolStart` announced has its result, which is about to join the transcript."""

    call_id: str
    result: ToolResultMessage


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn is over: its message and the results of all its calls are in the transcript."""

    step: int


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """A run is over; the last event of every run, with what its `prompt` is about to return."""

    result: AgentRunResult


AgentEvent: TypeAlias = (
    AgentStart | TurnStart | MessageUpdate | MessageEnd | ToolStart | ToolEnd | TurnEnd | AgentEnd
)
