"""Chapter 11: what of a session's path is shown within a budget."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pi_course import context
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
    user_message,
)
from pi_course.session import CompactionEntry, MessageEntry, MetadataEntry, SessionEntry, SessionTreeError
from pi_course.values import clone


def says(*ids: str, text: str = "") -> AssistantMessage:
    """An assistant message that calls tools under these ids."""
    content: list[TextContent | ToolCall] = [TextContent(text)] if text else []
    return AssistantMessage([*content, *[ToolCall(each, "read", {"n": [1]}) for each in ids]], "stop", 50)


def result(call_id: str) -> ToolResultMessage:
    """The result of a call."""
    return ToolResultMessage(call_id, "read", [TextContent(f"result {call_id}")], False, 60, {"k": [1]})


def user(text: str) -> UserMessage:
    """A user message."""
    return user_message(text, timestamp=40)


def path_of(*steps: Any) -> list[SessionEntry]:
    """A path of messages, or what stands for them: a dict is metadata, a tuple a compaction."""
    path: list[SessionEntry] = []
    for place, step in enumerate(steps):
        head = (f"e{place}", f"e{place - 1}" if place else None, 100 + place)
        if isinstance(step, dict):
            path.append(MetadataEntry(*head, step))
        elif isinstance(step, tuple):
            path.append(CompactionEntry(*head, *step))
        else:
            path.append(MessageEntry(*head, step))
    return path


def one(value: AgentMessage | str) -> int:
    """Count each message, and a system prompt, as one token."""
    return 1


def build(path: list[SessionEntry], max_tokens: int = 1000, estimate: Any = one, **options: Any) -> Any:
    """Project a path."""
    return context.build_context(path, max_tokens=max_tokens, estimate_tokens=estimate, **options)


def shown(projection: Any) -> list[str]:
    """The messages in short: text, ? and = before the ids of calls and results, ! where one failed."""
    short = []
    for message in projection.messages:
        if isinstance(message, ToolResultMessage):
            short.append(f"{'!' if message.is_error else '='}{message.tool_call_id}")
        else:
            calls = "".join(f"?{each.id}" for each in tool_calls_of(message))
            short.append(text_of(message) + calls)
    return short


def three_interactions() -> list[SessionEntry]:
    """Interactions of 2, 4 and 2 messages."""
    return path_of(
        *(user("u1"), says(text="a1")),
        *(user("u2"), says("c"), result("c"), says(text="a2")),
        *(user("u3"), says(text="a3")),
    )


@pytest.mark.parametrize(
    ("max_tokens", "first", "dropped"), [(8, "u1", 0), (7, "u2", 2), (6, "u2", 2), (5, "u3", 6), (2, "u3", 6)]
)
def test_whole_interactions_are_kept_from_the_newest_back(max_tokens: int, first: str, dropped: int) -> None:
    """Interactions are kept newest first while they fit; none is split, and there are no gaps."""
    path = three_interactions()
    projection = build(path, max_tokens)
    assert shown(projection)[0] == first
    assert projection.messages == [
        entry.message for entry in path[dropped:] if isinstance(entry, MessageEntry)
    ]
    assert (projection.used_tokens, projection.dropped_messages) == (8 - dropped, dropped)
    assert projection.system_prompt is None


def test_newest_interaction_has_to_fit() -> None:
    """Where not even the newest interaction fits, ContextBudgetError gives the figures."""
    with pytest.raises(context.ContextBudgetError) as caught:
        build(three_interactions(), 31, reserved_output=20, safety_margin=10)
    assert "32" in str(caught.value)
    assert "31" in str(caught.value)
    assert "30" in str(caught.value)


def test_what_stands_before_the_first_user_message_is_a_group() -> None:
    """Messages before any user message are kept together or dropped together."""
    path = path_of(says("c"), result("c"), says(text="a"), user("u"), says(text="b"))
    assert shown(build(path, 5)) == ["?c", "=c", "a", "u", "b"]
    projection = build(path, 4)
    assert (shown(projection), projection.dropped_messages) == (["u", "b"], 3)
    assert shown(build(path[:3], 3)) == ["?c", "=c", "a"]
    with pytest.raises(context.ContextBudgetError):
        build(path[:3], 2)


def test_fixed_cost_comes_first() -> None:
    """System prompt, reserved output and margin take their share before any message, and count as used."""
    options: dict[str, Any] = {"system_prompt": "SYSTEM", "reserved_output": 3, "safety_margin": 2}
    projection = build(three_interactions(), 12, **options)
    assert (projection.used_tokens, projection.dropped_messages) == (12, 2)
    assert projection.system_prompt == "SYSTEM"
    assert build(three_interactions(), 14, **options).dropped_messages == 0


@pytest.mark.parametrize("path", [[], three_interactions()])
def test_fixed_cost_above_the_budget_is_an_error_whatever_the_path(path: list[SessionEntry]) -> None:
    """A fixed cost above `max_tokens` is ContextBudgetError with the figures; an equal one is not."""
    with pytest.raises(context.ContextBudgetError) as caught:
        build(path, 5, system_prompt="SYSTEM", reserved_output=4, safety_margin=1)
    assert "6" in str(caught.value)
    assert "5" in str(caught.value)
    projection = build([], 6, system_prompt="SYSTEM", reserved_output=4, safety_margin=1)
    assert (projection.messages, projection.used_tokens, projection.dropped_messages) == ([], 6, 0)


def test_empty_path_and_empty_prompt_cost_nothing() -> None:
    """An empty system prompt is not even estimated; an empty path fits into nothing."""
    projection = build([], 0, lambda value: 1 / 0, system_prompt="")
    assert (projection.messages, projection.used_tokens, projection.system_prompt) == ([], 0, "")
    assert build(path_of({"title": "x"}), 0).messages == []


def test_estimator_is_asked_for_messages_and_for_the_prompts_text() -> None:
    """The estimator gets the system prompt as a string and everything else as a message."""
    asked: list[Any] = []

    def estimate(value: AgentMessage | str) -> int:
        asked.append(clone(value))
        return 1

    build(three_interactions()[:2], estimate=estimate, system_prompt="SYSTEM")
    assert "SYSTEM" in asked
    assert user("u1") in asked
    assert says(text="a1") in asked
    assert len(asked) == 3


@pytest.mark.parametrize("answer", [-1, 1.0, True, None, "1"])
@pytest.mark.parametrize("asked", [str, AssistantMessage, ToolResultMessage])
def test_estimate_that_is_no_number_of_tokens_is_refused(answer: Any, asked: type) -> None:
    """A negative or non-integer estimate, of message or prompt, is ValueError."""

    def estimate(value: AgentMessage | str) -> int:
        return answer if isinstance(value, asked) else 1  # type: ignore[no-any-return]

    with pytest.raises(ValueError):
        build(path_of(user("u"), says("c"), result("c")), estimate=estimate, system_prompt="SYSTEM")


@pytest.mark.parametrize("name", ["max_tokens", "reserved_output", "safety_margin"])
@pytest.mark.parametrize("figure", [1.0, True, None, "1"])
def test_figure_that_is_no_integer_is_refused(name: str, figure: Any) -> None:
    """The budget's own figures are integers, and no share is negative: that would be room out of nothing."""
    options: dict[str, Any] = {"max_tokens": 10, name: figure}
    with pytest.raises(ValueError):
        context.build_context([], estimate_tokens=one, **options)
    if name != "max_tokens":
        with pytest.raises(ValueError):
            build([], 10, **{name: -1})


def test_path_of_messages_instead_of_entries_is_refused() -> None:
    """A path of anything but entries is TypeError, not an empty projection."""
    for wrong in (user("u"), None, {"type": "message"}):
        with pytest.raises(TypeError):
            build([wrong])  # type: ignore[list-item]


def test_metadata_never_reaches_the_model() -> None:
    """Metadata is neither shown nor counted, wherever it stands."""
    path = path_of({"k": 1}, user("u"), {"k": 2}, says("c"), {"k": 3}, result("c"), {"k": 4})
    projection = build(path, 3)
    assert (shown(projection), projection.used_tokens, projection.dropped_messages) == (
        ["u", "?c", "=c"],
        3,
        0,
    )


def test_last_compaction_replaces_what_stands_before_its_first_kept() -> None:
    """The summary stands first, as a user message; what it replaced is neither shown nor called dropped."""
    path = [*three_interactions(), *path_of(*["x"] * 8, ("OLD STORY", "e6"), user("u4"))[8:]]
    projection = build(path, 100)
    summary = projection.messages[0]
    assert isinstance(summary, UserMessage)
    assert "OLD STORY" in text_of(summary)
    assert shown(projection)[1:] == ["u3", "a3", "u4"]
    assert (projection.used_tokens, projection.dropped_messages) == (4, 0)
    path = path_of(user("u1"), user("u2"), ("FIRST", "e0"), user("u3"), ("SECOND", "e1"), user("u4"))
    projection = build(path)
    assert shown(projection)[1:] == ["u2", "u3", "u4"]
    assert "SECOND" in shown(projection)[0]
    assert "FIRST" not in "".join(shown(projection))


def test_summary_is_part_of_the_fixed_cost_and_never_dropped() -> None:
    """The summary is estimated as a message, before any interaction, and stays whatever else goes."""

    def estimate(value: AgentMessage | str) -> int:
        return 10 if isinstance(value, UserMessage) and "STORY" in text_of(value) else 1

    path = path_of(user("u1"), user("u2"), ("STORY", "e1"), user("u3"))
    assert shown(build(path, 11, estimate))[1:] == ["u3"]
    assert build(path, 11, estimate).dropped_messages == 1
    with pytest.raises(context.ContextBudgetError, match="11"):
        build(path, 10, estimate)
    with pytest.raises(context.ContextBudgetError, match="10"):
        build(path, 9, estimate)


def test_compaction_may_keep_from_any_entry_of_the_path() -> None:
    """The first kept entry may be metadata, inside an interaction, the compaction itself or a later entry."""
    path = path_of(user("u1"), {"k": 1}, says(text="a1"), user("u2"), ("S", "e1"), user("u3"))
    assert shown(build(path))[1:] == ["a1", "u2", "u3"]
    for kept, rest in (
        ("e2", ["a1", "u2", "u3"]),
        ("e4", ["u3"]),
        ("e5", ["u3"]),
        ("e0", ["u1", "a1", "u2", "u3"]),
    ):
        path[4] = CompactionEntry("e4", "e3", 104, "S", kept)
        assert shown(build(path))[1:] == rest


@pytest.mark.parametrize("kept", ["lost", "E2", "e3", "e4", "e5"])
def test_compaction_that_keeps_from_nowhere_or_parts_a_call_is_refused(kept: str) -> None:
    """A first kept id off the path, or between a call and its result, is SessionTreeError naming it."""
    path = path_of(user("u"), says(text="a"), says("c", "d"), {"k": 1}, result("c"), result("d"), ("S", kept))
    with pytest.raises(SessionTreeError, match=kept):
        build(path)
    path[-1] = CompactionEntry("e6", "e5", 106, "S", "e2")
    assert shown(build(path))[1:] == ["?c?d", "=c", "=d"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([says("c")], ["?c", "!c"]),
        ([says("c", "d"), result("c")], ["?c?d", "=c", "!d"]),
        ([says("c", "d"), result("d")], ["?c?d", "!c", "=d"]),
        ([says("c", "d", "e"), result("d"), user("u")], ["?c?d?e", "!c", "=d", "!e", "u"]),
        ([says("c"), user("u"), says("c"), result("c")], ["?c", "!c", "u", "?c", "=c"]),
        ([says("c", "c"), result("c")], ["?c?c", "=c", "!c"]),
        ([says("c"), {"k": 1}, result("c")], ["?c", "=c"]),
    ],
)
def test_call_without_a_result_gets_an_error_result(steps: list[Any], expected: list[str]) -> None:
    """A call that has no result on the path gets a synthetic one, in the order of the calls."""
    path = path_of(*steps)
    before = clone(path)
    assert shown(build(path)) == expected
    assert path == before


def test_synthetic_results_cost_tokens_but_are_never_dropped_messages() -> None:
    """A synthetic result belongs to its call's interaction: paired, estimated, but not called dropped."""
    path = path_of(user("u1"), says("c"), user("u2"))
    projection = build(path, 4)
    made = projection.messages[2]
    assert isinstance(made, ToolResultMessage)
    assert (made.tool_call_id, made.tool_name, made.is_error) == ("c", "read", True)
    assert text_of(made)
    assert projection.used_tokens == 4
    assert build(path, 4) == projection
    assert build(path, 3).dropped_messages == 2
    assert shown(build(path, 3)) == ["u2"]


def test_nothing_is_shared_or_changed() -> None:
    """The projection is a deep copy, and neither the path nor its entries change."""
    path = path_of(user("u"), says("c"), result("c"), ("S", "e0"))
    before = clone(path)
    projection = build(path, system_prompt="S")
    for message in projection.messages:
        for part in message.content:
            if isinstance(part, ToolCall):
                part.arguments["n"] = None
        if isinstance(message, ToolResultMessage):
            message.details["k"].clear()  # type: ignore[index, call-overload, union-attr]
        message.content.clear()
    projection.messages.clear()
    assert path == before
    assert build(tuple(path)).messages == build(path).messages  # type: ignore[arg-type]


steps = st.lists(
    st.sampled_from(["user", "says", "call", "calls", "result", "metadata", "compaction"]), max_size=14
)


def random_path(kinds: list[str], data: st.DataObject) -> list[SessionEntry]:
    """A path of such steps; results answer open calls, some of which stay open."""
    made: list[Any] = []
    still_open: list[str] = []
    for place, kind in enumerate(kinds):
        if kind in ("call", "calls"):
            still_open = [f"c{place}-{number}" for number in range(len(kind) - 3)]
            made.append(says(*still_open))
        elif kind == "result" and still_open:
            made.append(result(still_open.pop(0)))
        elif kind == "compaction" and place:
            made.append(("SUMMARY", f"e{data.draw(st.integers(0, place))}"))
        elif kind == "metadata":
            made.append({"place": place})
        else:
            still_open = []
            made.append(user(f"u{place}") if kind == "user" else says(text=f"a{place}"))
    return path_of(*made)


@settings(max_examples=300, deadline=None)
@given(steps, st.integers(0, 60), st.data())
def test_any_projection_is_the_longest_fitting_end_of_the_path(
    kinds: list[str], max_tokens: int, data: st.DataObject
) -> None:
    """Whatever path and budget: whole interactions, paired calls, true figures, and no more would fit."""
    path = random_path(kinds, data)
    before = clone(path)

    def estimate(value: AgentMessage | str) -> int:
        return 3 if isinstance(value, str) else 1 + len(text_of(value)) % 5

    options: dict[str, Any] = {"system_prompt": "SYSTEM", "reserved_output": 2}
    try:
        everything = build(path, 10_000, estimate, **options)
        projection = build(path, max_tokens, estimate, **options)
    except SessionTreeError:
        return
    except context.ContextBudgetError:
        newest = [text_of(each) for each in everything.messages if isinstance(each, UserMessage)]
        assert max_tokens < 5 + sum(map(estimate, everything.messages)) or not newest
        return
    finally:
        assert path == before
    messages = projection.messages
    summarised = any(isinstance(entry, CompactionEntry) for entry in path)
    own = messages[summarised:]
    assert projection.used_tokens == 5 + sum(map(estimate, messages)) <= max_tokens
    assert messages[:summarised] == everything.messages[:summarised]
    assert own == everything.messages[len(everything.messages) - len(own) :]
    missing = everything.messages[summarised : len(everything.messages) - len(own)]
    made_up = [each for each in missing if isinstance(each, ToolResultMessage) and each.is_error]
    assert projection.dropped_messages == len(missing) - len(made_up)
    if missing:
        assert isinstance(own[0], UserMessage)
        last = max(place for place, each in enumerate(missing) if place == 0 or isinstance(each, UserMessage))
        assert projection.used_tokens + sum(map(estimate, missing[last:])) > max_tokens
    owed: list[str] = []
    for message in own:
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id == owed.pop(0)
        else:
            assert owed == []
            owed = [each.id for each in tool_calls_of(message)]
    assert owed == []
