"""Chapter 03: messages as Python sees them, and as Pi writes them."""

import json
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pi_course import messages, values

USER: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}
ASSISTANT: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py", "lines": [1, 2]}},
    ],
    "stopReason": "toolUse",
    "timestamp": 2,
}
RESULT: dict[str, Any] = {
    "role": "toolResult",
    "toolCallId": "c1",
    "toolName": "read",
    "content": [{"type": "text", "text": "x = 1"}],
    "isError": False,
    "timestamp": 3,
}

# The same examples in every run, however slow the machine is.
steadily = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TEXTS = st.lists(st.builds(messages.TextContent, st.text()), max_size=3)
CALLS = st.builds(messages.ToolCall, st.text(), st.text(), st.dictionaries(st.text(), JSON, max_size=3))
STOP_REASONS = ("stop", "toolUse", "length", "error", "aborted")
MESSAGES = (
    st.builds(messages.UserMessage, TEXTS, st.integers())
    | st.builds(
        messages.AssistantMessage,
        st.lists(st.builds(messages.TextContent, st.text()) | CALLS, max_size=4),
        st.sampled_from(STOP_REASONS),
        st.integers(),
        st.none() | st.text(),
    )
    | st.builds(
        messages.ToolResultMessage, st.text(), st.text(), TEXTS, st.booleans(), st.integers(), details=JSON
    )
)


def _assistant(*content: Any) -> Any:
    return messages.AssistantMessage(list(content), "stop", 5)


def test_every_class_names_itself() -> None:
    """Parts carry Pi's `type` and messages Pi's `role`, and neither can be assigned."""
    text, call = messages.TextContent("a"), messages.ToolCall("c1", "read", {})
    answer = _assistant()
    user: Any = messages.UserMessage([], 1)
    result = messages.ToolResultMessage("c1", "read", [], False, 1)
    assert (text.type, call.type) == ("text", "toolCall")
    assert (user.role, answer.role, result.role) == ("user", "assistant", "toolResult")
    with pytest.raises(AttributeError):
        user.role = "assistant"


def test_messages_are_changeable_values_with_slots() -> None:
    """Fields can be assigned, and a misspelt field is an error instead of a new attribute."""
    message = messages.user_message("a", timestamp=1)
    message.timestamp = 2
    message.content.append(messages.TextContent("b"))
    assert (message.timestamp, messages.text_of(message)) == (2, "ab")
    made: list[Any] = [message, message.content[0], messages.ToolCall("c1", "read", {}), _assistant()]
    for value in made:
        assert not hasattr(value, "__dict__")
        with pytest.raises(AttributeError):
            value.timestmap = 3


def test_messages_compare_by_content() -> None:
    """Two messages are equal where class and all fields are, and only there."""
    assert messages.user_message("a", timestamp=1) == messages.user_message("a", timestamp=1)
    assert messages.user_message("a", timestamp=1) != messages.user_message("a", timestamp=2)
    assert messages.user_message("a", timestamp=1) != messages.user_message("b", timestamp=1)
    of_another_role: Any = messages.UserMessage([], 1)
    assert of_another_role != messages.AssistantMessage([], "stop", 1)


def test_optional_fields_are_unset_at_first() -> None:
    """`error_message` and `details` are `None` unless given."""
    assert messages.AssistantMessage([], "stop", 1).error_message is None
    assert messages.ToolResultMessage("c1", "read", [], False, 1).details is None


def test_user_message_holds_one_text_part() -> None:
    """`user_message(text)` is one text part with the timestamp that it was given, zero too."""
    expected = messages.UserMessage([messages.TextContent("hi")], 0)
    assert messages.user_message("hi", timestamp=0) == expected


def test_user_message_is_stamped_in_milliseconds() -> None:
    """Without a timestamp the present is taken, as whole milliseconds since the Unix epoch."""
    before = time.time_ns() // 1_000_000
    stamp = messages.user_message("hi").timestamp
    assert type(stamp) is int
    assert before <= stamp <= time.time_ns() // 1_000_000


@pytest.mark.parametrize("view", [values.clone, values.freeze])
def test_text_of_joins_text_parts_in_order(view: Callable[[Any], Any]) -> None:
    """`text_of` joins the text parts without separator, skips tool calls, and is `""` without text."""
    call = messages.ToolCall("c1", "read", {})
    message = _assistant(
        messages.TextContent("a\n"), call, messages.TextContent(""), messages.TextContent("b")
    )
    assert messages.text_of(view(message)) == "a\nb"
    assert messages.text_of(view(_assistant(call))) == ""
    result = messages.ToolResultMessage("c1", "read", [messages.TextContent("x")], False, 1)
    assert messages.text_of(view(result)) == "x"
    assert messages.text_of(view(messages.user_message("y"))) == "y"


@pytest.mark.parametrize("view", [values.clone, values.freeze])
def test_tool_calls_of_gives_calls_in_order(view: Callable[[Any], Any]) -> None:
    """`tool_calls_of` gives a new list of the calls, in order, empty where there are none."""
    calls = [messages.ToolCall("c1", "read", {"path": "a"}), messages.ToolCall("c2", "write", {})]
    message = view(_assistant(calls[0], messages.TextContent("then"), calls[1]))
    found = messages.tool_calls_of(message)
    assert isinstance(found, list)
    assert values.clone(found) == calls
    found.clear()
    assert len(messages.tool_calls_of(message)) == 2
    assert messages.tool_calls_of(view(messages.user_message("a"))) == []


def test_wire_form_is_pis() -> None:
    """Each role is written in Pi's spelling, field by field, and read back from it."""
    text, call = messages.TextContent, messages.ToolCall
    pairs: list[tuple[Any, dict[str, Any]]] = [
        (messages.UserMessage([text("hi")], 1), USER),
        (
            messages.AssistantMessage(
                [text("I look."), call("c1", "read", {"path": "a.py", "lines": [1, 2]})], "toolUse", 2
            ),
            ASSISTANT,
        ),
        (messages.ToolResultMessage("c1", "read", [text("x = 1")], False, 3), RESULT),
    ]
    for message, wire in pairs:
        assert messages.message_to_json(message) == wire
        assert messages.message_from_json(wire) == message


def test_optional_wire_fields_only_where_set() -> None:
    """`details` and `errorMessage` are written where they are not `None`; empty values count as set."""
    failed = messages.AssistantMessage([], "error", 1, error_message="")
    assert messages.message_to_json(failed)["errorMessage"] == ""
    empty: list[Any] = [0, False, "", [], {}]
    for details in empty:
        result = messages.ToolResultMessage("c1", "read", [], True, 1, details=details)
        wire = messages.message_to_json(result)
        assert wire["details"] == details
        assert messages.message_from_json(wire) == result
    assert "details" not in messages.message_to_json(messages.ToolResultMessage("c1", "r", [], True, 1))
    assert "errorMessage" not in messages.message_to_json(_assistant())


def test_details_null_reads_like_details_absent() -> None:
    """A wire form that says `"details": null` gives the message that one without `details` gives."""
    assert messages.message_from_json({**RESULT, "details": None}) == messages.message_from_json(RESULT)


@steadily
@given(MESSAGES)
def test_wire_form_survives_json_text(message: Any) -> None:
    """Written to JSON text and read back, every message equals itself, floats and odd strings included."""
    text = json.dumps(messages.message_to_json(message))
    again = messages.message_from_json(json.loads(text))
    assert again == message
    assert json.dumps(messages.message_to_json(again)) == text


@steadily
@given(MESSAGES)
def test_frozen_messages_have_the_same_wire_form(message: Any) -> None:
    """A frozen message is written exactly like the changeable one, in plain dicts and lists."""
    wire = messages.message_to_json(values.freeze(message))
    assert json.dumps(wire) == json.dumps(messages.message_to_json(message))


def test_frozen_messages_can_be_pickled() -> None:
    """A frozen message goes through pickle, to a worker process say, and comes out frozen and equal."""
    frozen = values.freeze(messages.message_from_json(ASSISTANT))
    again = pickle.loads(pickle.dumps(frozen))
    assert again == frozen
    with pytest.raises(TypeError):
        again.timestamp = 9


def test_wire_form_is_detached_both_ways() -> None:
    """Neither writing nor reading shares a container between message and wire form."""
    source = json.loads(json.dumps({**RESULT, "details": {"lines": [1]}}))
    result: Any = messages.message_from_json(source)
    source["details"]["lines"].append(2)
    source["content"].clear()
    wire: Any = messages.message_to_json(result)
    wire["details"]["lines"].append(3)
    assert result.details == {"lines": [1]}
    call_source = json.loads(json.dumps(ASSISTANT))
    answer: Any = messages.message_from_json(call_source)
    call_source["content"][1]["arguments"]["lines"].append(3)
    written: Any = messages.message_to_json(answer)
    written["content"][1]["arguments"]["lines"].append(4)
    assert messages.tool_calls_of(answer)[0].arguments["lines"] == [1, 2]


def test_unknown_wire_keys_are_ignored() -> None:
    """What a later Pi adds, on messages and on parts, does not stop this reader, whatever it holds."""
    part = {"type": "text", "text": "hi", "signature": "s"}
    wire = {**USER, "content": [part], "usage": {"input": 5}, "odd": object()}
    assert messages.message_from_json(wire) == messages.message_from_json(USER)


def _without(wire: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key != name}


def _with_part(**fields: Any) -> dict[str, Any]:
    part = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}, **fields}
    return {**ASSISTANT, "content": [part]}


def _each(wire: dict[str, Any], name: str, *wrong: Any) -> list[tuple[str, Any]]:
    return [(name, {**wire, name: value}) for value in wrong]


CALL_IN_USER = {**USER, "content": ASSISTANT["content"]}
WRONG: list[tuple[str, Any]] = [
    ("role", {}),
    ("role", {**USER, "role": "system"}),
    ("role", {**USER, "role": None}),
    ("role", {**USER, "role": ["user"]}),
    *[(name, _without(wire, name)) for wire in (USER, ASSISTANT, RESULT) for name in wire],
    *_each(USER, "timestamp", True, 1.0, "1", None),
    *_each(USER, "content", "hi", None, {}, (), 1),
    *[("content[0]", wire) for _, wire in _each(USER, "content", ["hi"], [None], [[]], [1])],
    ("content[0].type", {**USER, "content": [{"text": "hi"}]}),
    ("content[0].type", {**USER, "content": [{"type": "image", "data": ""}]}),
    ("content[0].type", {**USER, "content": [{"type": ["text"], "text": "hi"}]}),
    ("content[0].text", {**USER, "content": [{"type": "text"}]}),
    ("content[0].text", {**USER, "content": [{"type": "text", "text": None}]}),
    ("content[1].type", CALL_IN_USER),
    ("content[1].type", {**RESULT, "content": ASSISTANT["content"]}),
    ("content[0].id", _with_part(id=1)),
    ("content[0].id", _with_part(id=None)),
    ("content[0].name", _with_part(name=1)),
    ("content[0].arguments", _with_part(arguments=None)),
    ("content[0].arguments", _with_part(arguments=[])),
    ("content[0].arguments", _with_part(arguments="{}")),
    ("content[0].arguments", _with_part(arguments={"key": {1}})),
    ("content[0].arguments", _with_part(arguments={1: 2})),
    *_each(ASSISTANT, "stopReason", "tool_use", "", None, ["stop"]),
    *_each(ASSISTANT, "errorMessage", 1, None, ["no"]),
    *_each(RESULT, "toolCallId", 1, None),
    *_each(RESULT, "toolName", 1, None),
    *_each(RESULT, "isError", 0, 1, "false", None),
    ("details", {**RESULT, "details": {"when": object()}}),
]


@pytest.mark.parametrize(("field", "wire"), WRONG, ids=[f"{n}-{field}" for n, (field, _) in enumerate(WRONG)])
def test_wrong_wire_shapes_name_the_field(field: str, wire: Any) -> None:
    """A missing field, a wrong type (`true` is no number) or an unknown value: `ValueError` naming it."""
    with pytest.raises(ValueError) as caught:
        messages.message_from_json(wire)
    assert field in str(caught.value)


@pytest.mark.parametrize("data", [None, [], "text", 1, [USER]], ids=repr)
def test_what_is_no_object_is_no_message(data: Any) -> None:
    """Only a JSON object can be a message: anything else is `ValueError` as well."""
    with pytest.raises(ValueError):
        messages.message_from_json(data)


def test_only_json_is_written() -> None:
    """What is no message, no part or no JSON is `TypeError` when it is written, not when it is read."""
    part: Any = messages.TextContent("a")
    odd: Any = object()
    text_for_parts: Any = "hi"
    wrong: list[Any] = [
        USER,
        part,
        messages.UserMessage(text_for_parts, 1),
        _assistant(messages.ToolCall("c1", "read", {"path": odd})),
        _assistant(messages.ToolCall("c1", "read", {"path": part})),
        messages.ToolResultMessage("c1", "read", [], False, 1, details=part),
    ]
    for value in wrong:
        with pytest.raises(TypeError):
            messages.message_to_json(value)
