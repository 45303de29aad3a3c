"""Context: which part of a session's path a model is shown within a budget of tokens.

Decision: whole interactions from the newest back, without a gap, not single messages: one cut out would leave
a call without its result, and a gap would show the model a conversation that never took place.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from pi_course.messages import (
    AgentMessage,
    ToolResultMessage,
    UserMessage,
    tool_calls_of,
    user_message,
)
from pi_course.session import CompactionEntry, MessageEntry, SessionEntry, SessionTreeError
from pi_course.tools import error_result
from pi_course.values import clone

TokenEstimator: TypeAlias = Callable[[AgentMessage | str], int]
# From a call (its message's index on the path, its place in there) to its result's index.
_Answers: TypeAlias = dict[tuple[int, int], int]


class ContextBudgetError(Exception):
    """What must be shown needs more tokens than there are; `needed` and `max_tokens` are the figures."""

    def __init__(self, needed: int, max_tokens: int, what: str) -> None:
        super().__init__(f"{needed} tokens are needed ({what}), but the budget is {max_tokens}")
        self.needed = needed
        self.max_tokens = max_tokens


@dataclass(frozen=True, slots=True)
class ContextProjection:
    """What a model is shown; `dropped_messages` counts those of the path that the budget had no room for."""

    messages: list[AgentMessage]
    system_prompt: str | None
    used_tokens: int
    dropped_messages: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A message that may be shown, and whether the path holds it or this module made it up."""

    message: AgentMessage
    synthetic: bool = False


def build_context(  # noqa: PLR0913 - one keyword a figure of the budget
    active_path: Sequence[SessionEntry],
    *,
    max_tokens: int,
    estimate_tokens: TokenEstimator,
    system_prompt: str | None = None,
    reserved_output: int = 0,
    safety_margin: int = 0,
) -> ContextProjection:
    """Project a path, root first, into a budget; nothing of the input is changed or shared. (Chapter 11)

    The fixed cost (system prompt, reserved output, safety margin, summary) comes first; then interactions
    from the newest back, while they fit. `estimate_tokens` is asked for messages and the prompt's text.

    ContextBudgetError where the fixed cost or the newest interaction does not fit; SessionTreeError for a
    compaction that keeps from an id not on the path, or from between a call and its result; ValueError for
    a number of tokens that is none; TypeError for a path of anything but entries.
    """

    def cost(value: AgentMessage | str) -> int:
        return _tokens("an estimate", estimate_tokens(value))

    summary, lines = _lines_of(active_path)
    used = _tokens("reserved_output", reserved_output) + _tokens("safety_margin", safety_margin)
    used += cost(system_prompt) if system_prompt else 0
    used += cost(summary) if summary else 0
    if used > _tokens("max_tokens", max_tokens, least=None):
        raise ContextBudgetError(used, max_tokens, "the fixed cost alone")
    messages, used, dropped = _newest_that_fit(_interactions(lines), used, max_tokens, cost)
    return ContextProjection([*([summary] if summary else []), *messages], system_prompt, used, dropped)


def _newest_that_fit(
    groups: list[list[_Line]], fixed: int, max_tokens: int, cost: TokenEstimator
) -> tuple[list[AgentMessage], int, int]:
    """Copy the newest groups that fit without a gap; give messages, tokens used, messages dropped."""
    shown: list[list[AgentMessage]] = []
    used = fixed
    for group in reversed(groups):
        messages = [clone(line.message) for line in group]
        needed = used + sum([cost(message) for message in messages])
        if needed > max_tokens:
            break
        shown.append(messages)
        used = needed
    if groups and not shown:
        raise ContextBudgetError(needed, max_tokens, f"the newest interaction and a fixed cost of {fixed}")
    dropped = sum(not line.synthetic for group in groups[: len(groups) - len(shown)] for line in group)
    return list(chain.from_iterable(reversed(shown))), used, dropped


def _lines_of(path: Sequence[SessionEntry]) -> tuple[UserMessage | None, list[_Line]]:
    """Replace what the last compaction stands for, leave out what is no message, fill in missing results."""
    for entry in path:
        if not isinstance(entry, SessionEntry):
            raise TypeError(f"a path holds session entries, not {type(entry).__name__}")
    answers = _answers(path)
    compactions = [entry for entry in path if isinstance(entry, CompactionEntry)]
    start, summary = 0, None
    if compactions:
        start = _start_of(compactions[-1], path, answers)
        text = f"Summary of the conversation so far:\n\n{compactions[-1].summary}"
        summary = user_message(text, timestamp=compactions[-1].timestamp)
    synthetic = _synthetic_results(path, answers)
    lines: list[_Line] = []
    for index in range(start, len(path)):
        entry = path[index]
        if isinstance(entry, MessageEntry):
            lines.append(_Line(entry.message))
            lines += [_Line(result, synthetic=True) for result in synthetic.get(index, ())]
    return summary, lines


def _start_of(compaction: CompactionEntry, path: Sequence[SessionEntry], answers: _Answers) -> int:
    kept_id = compaction.first_kept_id
    start = next((index for index, entry in enumerate(path) if entry.id == kept_id), None)
    if start is None:
        raise SessionTreeError(
            f"compaction {compaction.id!r} keeps from {kept_id!r}, which is not on the path"
        )
    if any(called < start <= answered for (called, _), answered in answers.items()):
        raise SessionTreeError(
            f"compaction {compaction.id!r} keeps from {kept_id!r}, between a tool call and its result"
        )
    return start


def _answers(path: Sequence[SessionEntry]) -> _Answers:
    """Pair each result with the latest call before it that has its id and is still open."""
    answers: _Answers = {}
    open_calls: dict[str, deque[tuple[int, int]]] = {}
    for index, entry in enumerate(path):
        if not isinstance(entry, MessageEntry):
            continue
        if isinstance(entry.message, ToolResultMessage):
            if waiting := open_calls.get(entry.message.tool_call_id):
                answers[waiting.popleft()] = index
            continue
        calls = tool_calls_of(entry.message)
        open_calls |= {call.id: deque() for call in calls}
        for position, call in enumerate(calls):
            open_calls[call.id].append((index, position))
    return answers


def _synthetic_results(path: Sequence[SessionEntry], answers: _Answers) -> dict[int, list[ToolResultMessage]]:
    """Make error results for calls without one, by the index on the path behind which they belong."""
    made: dict[int, list[ToolResultMessage]] = {}
    for index, entry in enumerate(path):
        if not isinstance(entry, MessageEntry):
            continue
        behind = index
        for position, call in enumerate(tool_calls_of(entry.message)):
            answered = answers.get((index, position))
            if answered is not None:
                behind = answered
                continue
            result = error_result(call, "No result of this call was recorded")
            result.timestamp = entry.message.timestamp
            made.setdefault(behind, []).append(result)
    return made


def _interactions(lines: list[_Line]) -> list[list[_Line]]:
    """Cut before every user message."""
    groups: list[list[_Line]] = []
    for line in lines:
        if not groups or isinstance(line.message, UserMessage):
            groups.append([])
        groups[-1].append(line)
    return groups


def _tokens(name: str, value: int, *, least: int | None = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
        raise ValueError(f"{name} is a number of tokens, not {value!r}")
    return value
