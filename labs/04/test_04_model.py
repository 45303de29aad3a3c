"""Chapter 04: what a model streams, and a model that plays a script."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pi_course import messages, model, signals, values


def _call(number: int = 1) -> messages.ToolCall:
    return messages.ToolCall(f"c{number}", "read", {"path": "a.py", "lines": [number]})


def _message(*content: Any) -> messages.AssistantMessage:
    return messages.AssistantMessage(list(content) or [messages.TextContent("hello")], "stop", 1)


def _context(text: str = "hi") -> "model.ModelContext":
    schema = model.ToolSchema("read", "Read a file.", {"type": "object", "required": ["path"]})
    return model.ModelContext([messages.user_message(text, timestamp=1)], "Be brief.", [schema])


def _signal() -> signals.AbortSignal:
    return signals.AbortController().signal


async def _stream(*events: Any) -> AsyncIterator[Any]:
    for event in events:
        if isinstance(event, BaseException):
            raise event
        yield event


class _Endless:
    """An async iterator without `aclose`, counting what was taken from it."""

    def __init__(self, event: Any) -> None:
        self.event, self.taken = event, 0

    def __aiter__(self) -> "_Endless":
        return self

    async def __anext__(self) -> Any:
        self.taken += 1
        return self.event


async def test_collect_returns_the_message_of_the_closing_event() -> None:
    """`collect` reads a stream to its end and returns the message that `MessageDone` holds."""
    done = _message(messages.TextContent("hello"), _call())
    deltas = (model.TextDelta("hel"), model.TextDelta("lo"), model.ToolCallDelta(_call()))
    assert await model.collect(_stream(*deltas, model.MessageDone(done))) == done
    assert await model.collect(_stream(model.MessageDone(done))) == done


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_stream_without_closing_event_breaks_the_protocol(count: int) -> None:
    """A stream that ends early, empty or after some deltas, is a `ModelProtocolError`."""
    with pytest.raises(model.ModelProtocolError):
        await model.collect(_stream(*[model.TextDelta("a")] * count))


async def test_stream_that_goes_on_breaks_the_protocol() -> None:
    """Any event after `MessageDone`, a second one included, is a `ModelProtocolError`."""
    done = model.MessageDone(_message())
    for late in (model.TextDelta("late"), model.ToolCallDelta(_call()), done):
        with pytest.raises(model.ModelProtocolError):
            await model.collect(_stream(done, late))


async def test_stream_of_other_things_breaks_the_protocol() -> None:
    """What is no model event, a bare message for instance, is a `ModelProtocolError`."""
    for odd in ("text", None, _message()):
        with pytest.raises(model.ModelProtocolError):
            await model.collect(_stream(odd, model.MessageDone(_message())))


async def test_collect_passes_on_what_the_stream_raises() -> None:
    """A stream's own exception comes out as the very object, before the closing event and after it."""
    for events in ([model.TextDelta("a")], [model.MessageDone(_message())]):
        error = ConnectionError("line is down")
        with pytest.raises(ConnectionError) as caught:
            await model.collect(_stream(*events, error))
        assert caught.value is error


async def test_collect_closes_the_stream_that_it_gives_up() -> None:
    """A generator that still has something to say is closed, so that its connection is not left open."""
    closed = []

    async def chatty() -> AsyncIterator[Any]:
        try:
            while True:
                yield model.MessageDone(_message())
        finally:
            closed.append(True)

    with pytest.raises(model.ModelProtocolError):
        await model.collect(chatty())
    assert closed == [True]


async def test_collect_needs_no_more_than_an_async_iterator() -> None:
    """A stream without `aclose` is collected as well, and one that never ends is left at its second event."""
    endless = _Endless(model.MessageDone(_message()))
    with pytest.raises(model.ModelProtocolError):
        await model.collect(endless)
    assert endless.taken == 2


def test_events_are_frozen_values() -> None:
    """Model events compare by content and cannot be assigned to."""
    assert model.TextDelta("a") == model.TextDelta("a")
    assert model.ToolCallDelta(_call()) == model.ToolCallDelta(_call())
    assert model.MessageDone(_message()) != model.MessageDone(_message(_call()))
    with pytest.raises(FrozenInstanceError):
        model.TextDelta("a").text = "b"  # type: ignore[misc]


def test_context_is_a_value_of_the_package() -> None:
    """A model context can be cloned and frozen like any message."""
    context = _context()
    copied = values.clone(context)
    copied.messages.clear()
    copied.tools[0].parameters["required"] = []
    assert context == _context()
    assert values.clone(values.freeze(context)) == context


async def test_scripted_messages_are_streamed_part_by_part() -> None:
    """A scripted message gives a delta for each part, in order, and then the whole message."""
    message = _message(messages.TextContent("I look."), _call(1), messages.TextContent("And."), _call(2))
    scripted: model.Model = model.ScriptedModel([message])
    events = [event async for event in scripted.stream(_context(), _signal())]
    assert events == [
        model.TextDelta("I look."),
        model.ToolCallDelta(_call(1)),
        model.TextDelta("And."),
        model.ToolCallDelta(_call(2)),
        model.MessageDone(message),
    ]


async def test_scripted_replies_are_played_in_order() -> None:
    """Each request takes the next reply, in the order of the requests, until none is left."""
    replies = [_message(messages.TextContent(text)) for text in "abc"]
    scripted = model.ScriptedModel(iter(replies))
    streams = [scripted.stream(_context(), _signal()) for _ in replies]
    assert [await model.collect(stream) for stream in reversed(streams)] == replies[::-1]


async def test_scripted_exceptions_are_raised() -> None:
    """An exception in the script comes out of the stream as the very object, and the next reply plays on."""
    error = ConnectionError("line is down")
    scripted = model.ScriptedModel([error, _message()])
    with pytest.raises(ConnectionError) as caught:
        await model.collect(scripted.stream(_context(), _signal()))
    assert caught.value is error
    assert await model.collect(scripted.stream(_context(), _signal())) == _message()


async def test_scripted_callables_answer_the_context() -> None:
    """A callable, plain or async, gets the request's context and gives a message or an exception."""

    def echo(context: Any) -> messages.AssistantMessage:
        return _message(messages.TextContent(messages.text_of(context.messages[-1])))

    async def slow_echo(context: Any) -> messages.AssistantMessage:
        await asyncio.sleep(0)
        return echo(context)

    async def refuse(context: Any) -> Exception:
        return ValueError(context.system_prompt)

    def burst(context: Any) -> messages.AssistantMessage:
        raise ZeroDivisionError(context.tools[0].name)

    scripted = model.ScriptedModel([echo, slow_echo, refuse, burst])
    for text in ("one", "two"):
        answer = await model.collect(scripted.stream(_context(text), _signal()))
        assert messages.text_of(answer) == text
    with pytest.raises(ValueError, match=r"Be brief\."):
        await model.collect(scripted.stream(_context(), _signal()))
    with pytest.raises(ZeroDivisionError, match="read"):
        await model.collect(scripted.stream(_context(), _signal()))


async def test_script_that_runs_dry_breaks_the_protocol() -> None:
    """A request without a reply left is recorded, and its stream raises `ModelProtocolError`, every time."""
    scripted = model.ScriptedModel([_message()])
    await model.collect(scripted.stream(_context(), _signal()))
    for _ in range(2):
        stream = scripted.stream(_context(), _signal())
        with pytest.raises(model.ModelProtocolError):
            await model.collect(stream)
    assert len(scripted.requests) == 3


async def test_requests_are_deep_copies_at_the_time_of_the_request() -> None:
    """What happens to a context after the request, or to a recorded one, shows nowhere else."""
    seen = []

    def spoil(context: Any) -> messages.AssistantMessage:
        seen.append(values.clone(context))
        context.messages.clear()
        context.tools[0].parameters.clear()
        return _message()

    scripted = model.ScriptedModel([spoil])
    context = _context()
    stream = scripted.stream(context, _signal())
    context.messages.append(messages.user_message("later", timestamp=2))
    await model.collect(stream)
    assert scripted.requests == seen == [_context()]
    scripted.requests[0].messages.clear()
    assert len(context.messages) == 2


async def test_signals_are_recorded_themselves() -> None:
    """`signals` holds the very signal of each request, so that a test can ask whether it was passed on."""
    scripted = model.ScriptedModel([_message(), _message()])
    given = [_signal(), _signal()]
    for signal in given:
        await model.collect(scripted.stream(_context(), signal))
    assert [one is other for one, other in zip(scripted.signals, given, strict=True)] == [True, True]


async def test_script_is_detached_from_what_it_plays() -> None:
    """Changing a received message or delta changes no later reading of the same scripted reply."""
    reply = _message(_call())
    scripted = model.ScriptedModel([reply, reply])
    for _ in range(2):
        events: list[Any] = [event async for event in scripted.stream(_context(), _signal())]
        assert events == [model.ToolCallDelta(_call()), model.MessageDone(_message(_call()))]
        events[0].call.arguments.clear()
        events[1].message.content[0].arguments.clear()
        events[1].message.content.clear()
    assert reply == _message(_call())


async def test_reply_of_another_type_is_refused() -> None:
    """A script that answers with anything else, bare text for instance, is a `TypeError`."""
    for odd in ("hello", 5, lambda context: "hello"):
        with pytest.raises(TypeError):
            await model.collect(model.ScriptedModel([odd]).stream(_context(), _signal()))  # type: ignore[list-item]
