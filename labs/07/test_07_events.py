"""Chapter 07: the events of a run and its result."""

import dataclasses
from typing import Any, get_args

import pytest
from pi_course import events
from pi_course.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage, user_message
from pi_course.model import TextDelta, ToolCallDelta
from pi_course.values import clone, freeze

FIELDS = {
    "AgentStart": (),
    "TurnStart": ("step",),
    "MessageUpdate": ("delta",),
    "MessageEnd": ("message",),
    "ToolStart": ("call",),
    "ToolEnd": ("call_id", "result"),
    "TurnEnd": ("step",),
    "AgentEnd": ("result",),
}


def samples() -> dict[str, Any]:
    """One event of each kind, new at every call."""
    call = ToolCall("c1", "read", {"path": ["a", "b"]})
    result = ToolResultMessage("c1", "read", [TextContent("text")], False, 3, {"lines": [1]})
    return {
        "AgentStart": events.AgentStart(),
        "TurnStart": events.TurnStart(1),
        "MessageUpdate": events.MessageUpdate(ToolCallDelta(call)),
        "MessageEnd": events.MessageEnd(AssistantMessage([call], "toolUse", 2)),
        "ToolStart": events.ToolStart(call),
        "ToolEnd": events.ToolEnd("c1", result),
        "TurnEnd": events.TurnEnd(1),
        "AgentEnd": events.AgentEnd(events.AgentRunResult("stop", 2, [user_message("hi", timestamp=1)])),
    }


def test_agent_event_is_one_of_eight_kinds() -> None:
    """`AgentEvent` names exactly the eight kinds of events."""
    assert {kind.__name__ for kind in get_args(events.AgentEvent)} == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_event_has_the_documented_fields(name: str) -> None:
    """An event's fields are the documented ones, in order, and none has a default."""
    fields = dataclasses.fields(getattr(events, name))
    assert tuple(field.name for field in fields) == FIELDS[name]
    assert all(field.default is dataclasses.MISSING for field in fields)


@pytest.mark.parametrize("name", FIELDS)
def test_event_is_frozen(name: str) -> None:
    """Nothing can be assigned to an event, whether it has that field or not."""
    event = samples()[name]
    for field in (*FIELDS[name], "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(event, field, None)


@pytest.mark.parametrize("name", FIELDS)
def test_events_compare_by_content(name: str) -> None:
    """Two events of the same kind and content are equal, and differ from every other kind."""
    event = samples()[name]
    assert event == samples()[name]
    assert [other for other, value in samples().items() if value == event] == [name]


@pytest.mark.parametrize("name", FIELDS)
def test_a_cloned_event_shares_nothing_that_can_change(name: str) -> None:
    """A clone of an event is equal to it, and changing what hangs on it changes the clone alone."""
    event = samples()[name]
    copy = clone(event)
    assert copy == event
    for field in FIELDS[name]:
        value = getattr(copy, field)
        assert isinstance(value, int | str) or value is not getattr(event, field)
    if name == "MessageUpdate":
        copy.delta.call.arguments["path"].append("c")
    elif name == "ToolEnd":
        copy.result.details["lines"].clear()
    elif name == "AgentEnd":
        copy.result.messages[0].content[0].text = "changed"
    assert event == samples()[name]


def test_a_frozen_event_is_still_of_its_kind() -> None:
    """`freeze` keeps an event's class, so that a watcher may match on it."""
    frozen = freeze(samples()["MessageEnd"])
    assert isinstance(frozen, events.MessageEnd)
    with pytest.raises((AttributeError, TypeError)):
        frozen.message.stop_reason = "stop"
    assert clone(frozen) == samples()["MessageEnd"]


def test_run_result_holds_reason_steps_and_messages() -> None:
    """A result has the fields reason, steps and messages, in this order, and can't be reassigned."""
    result = events.AgentRunResult("max_steps", 16, [])
    assert (result.reason, result.steps, result.messages) == ("max_steps", 16, [])
    with pytest.raises((AttributeError, TypeError)):
        result.reason = "stop"  # type: ignore[misc]


def test_update_takes_either_delta() -> None:
    """A `MessageUpdate` carries a piece of text or a whole call."""
    assert events.MessageUpdate(TextDelta("a")).delta == TextDelta("a")
    assert events.MessageUpdate(TextDelta("a")) != events.MessageUpdate(TextDelta("b"))


def test_events_match_by_position() -> None:
    """Events can be taken apart in a `match`, as a renderer does."""
    match samples()["ToolEnd"]:
        case events.ToolEnd(call_id, ToolResultMessage(tool_name=name)):
            assert (call_id, name) == ("c1", "read")
        case other:
            pytest.fail(f"not matched: {other}")
