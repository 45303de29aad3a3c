"""Models: what one is asked, what it streams back, and one that plays a script."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pi_course.messages import AgentMessage, AssistantMessage, TextContent, ToolCall
from pi_course.signals import AbortSignal
from pi_course.values import JsonValue, clone


class ModelProtocolError(Exception):
    """A model broke the protocol of its stream, or a script has no reply left."""


@dataclass(slots=True)
class ToolSchema:
    """What a model is told of a tool; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


@dataclass(slots=True)
class ModelContext:
    """All that a model is given for one request."""

    messages: list[AgentMessage]
    system_prompt: str | None
    tools: list[ToolSchema]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the message that is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A tool call of the message that is being written, complete with its arguments."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class MessageDone:
    """The whole message: the last event of every stream, and there only."""

    message: AssistantMessage


ModelEvent: TypeAlias = TextDelta | ToolCallDelta | MessageDone


class Model(Protocol):
    """Anything that answers a context with a stream of events. (Chapter 04)"""

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Start a request; the iterator yields deltas and one closing `MessageDone`, or raises."""
        ...


async def collect(stream: AsyncIterator[ModelEvent]) -> AssistantMessage:
    """Return the message of a stream, reading it to its end.

    Raises `ModelProtocolError` where the stream ends without `MessageDone`, goes on after it or yields what
    is no model event; what the stream itself raises comes out unchanged. A stream that can be closed is
    closed in any case. (Chapter 04)
    """
    message: AssistantMessage | None = None
    try:
        async for event in stream:
            if message is not None:
                raise ModelProtocolError(f"the stream went on after MessageDone with {type(event).__name__}")
            if isinstance(event, MessageDone):
                message = event.message
            elif not isinstance(event, TextDelta | ToolCallDelta):
                raise ModelProtocolError(f"the stream yielded no model event but {type(event).__name__}")
    finally:
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()
    if message is None:
        raise ModelProtocolError("the stream ended without MessageDone")
    return message


Answer: TypeAlias = AssistantMessage | Exception
Reply: TypeAlias = Answer | Callable[[ModelContext], Answer | Awaitable[Answer]]


class ScriptedModel:
    """A model whose replies are written beforehand, one a request. (Chapter 04)

    A reply is an `AssistantMessage`, an `Exception` to raise, or a callable (plain or async) that gives one
    from the context. `requests` holds a deep copy of every context received, `signals` the signals
    themselves. A request without a reply left fails with `ModelProtocolError` when its stream is read.
    """

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.requests: list[ModelContext] = []
        self.signals: list[AbortSignal] = []
        self._replies = iter(replies)

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Record the request and play the next reply: a delta for each part, then the message."""
        self.requests.append(clone(context))
        self.signals.append(signal)
        return self._play(next(self._replies, None), clone(context))

    async def _play(self, reply: Reply | None, context: ModelContext) -> AsyncIterator[ModelEvent]:
        if reply is None:
            raise ModelProtocolError("the script has no reply left")
        message = await _resolve(reply, context)
        for part in message.content:
            yield TextDelta(part.text) if isinstance(part, TextContent) else ToolCallDelta(clone(part))
        yield MessageDone(clone(message))


async def _resolve(reply: Reply, context: ModelContext) -> AssistantMessage:
    answer: object = reply
    if callable(reply):
        answer = reply(context)
        if inspect.isawaitable(answer):
            answer = await answer
    if isinstance(answer, Exception):
        raise answer
    if not isinstance(answer, AssistantMessage):
        raise TypeError(f"a scripted reply gave {type(answer).__name__}, neither message nor Exception")
    return answer
