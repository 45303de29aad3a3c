"""Messages: what user, assistant and tools say to one another, and the JSON that Pi writes of it."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args

from pi_course.values import JsonValue, clone

StopReason: TypeAlias = Literal["stop", "toolUse", "length", "error", "aborted"]

T = TypeVar("T")


@dataclass(slots=True)
class TextContent:
    """A piece of text."""

    text: str
    type: ClassVar[Literal["text"]] = "text"


@dataclass(slots=True)
class ToolCall:
    """The assistant's wish to have a tool run; the result carries the same `id`."""

    id: str
    name: str
    arguments: dict[str, JsonValue]
    type: ClassVar[Literal["toolCall"]] = "toolCall"


@dataclass(slots=True)
class UserMessage:
    """What the user said; `timestamp` in milliseconds since the Unix epoch, as in every message."""

    content: list[TextContent]
    timestamp: int
    role: ClassVar[Literal["user"]] = "user"


@dataclass(slots=True)
class AssistantMessage:
    """What the model said, and why it ended there; `error_message` goes with `"error"` and `"aborted"`."""

    content: list[TextContent | ToolCall]
    stop_reason: StopReason
    timestamp: int
    error_message: str | None = None
    role: ClassVar[Literal["assistant"]] = "assistant"


@dataclass(slots=True)
class ToolResultMessage:
    """What came of the tool call `tool_call_id`; `content` is for the model, `details` for programs."""

    tool_call_id: str
    tool_name: str
    content: list[TextContent]
    is_error: bool
    timestamp: int
    details: JsonValue = None
    role: ClassVar[Literal["toolResult"]] = "toolResult"


AgentMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def now_ms() -> int:
    """Return the present as a message's timestamp: whole milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def user_message(text: str, *, timestamp: int | None = None) -> UserMessage:
    """Return a user message of one text part, stamped with the present unless told otherwise. (Chapter 03)"""
    return UserMessage([TextContent(text)], now_ms() if timestamp is None else timestamp)


def text_of(message: AgentMessage) -> str:
    """Return the text parts joined in order, without separator; `""` where there are none. (Chapter 03)"""
    return "".join([part.text for part in message.content if isinstance(part, TextContent)])


def tool_calls_of(message: AgentMessage) -> list[ToolCall]:
    """Return the message's tool calls in order: its own objects, in a new list. (Chapter 03)"""
    return [part for part in message.content if isinstance(part, ToolCall)]


def message_to_json(message: AgentMessage) -> dict[str, JsonValue]:
    """Return Pi's wire form as a new dict; `details` and `errorMessage` only where they are not `None`.

    Raises `TypeError` for what is no message, and for arguments or details that are not JSON. (Chapter 03)
    """
    if not isinstance(message, UserMessage | AssistantMessage | ToolResultMessage):
        raise TypeError(f"expected a message, got {type(message).__name__}")
    data: dict[str, JsonValue] = {"role": message.role}
    content: JsonValue = [_part_to_json(part) for part in message.content]
    if isinstance(message, ToolResultMessage):
        data |= {"toolCallId": message.tool_call_id, "toolName": message.tool_name, "content": content}
        if message.details is not None:
            data["details"] = _json_copy(message.details)
        data["isError"] = message.is_error
    else:
        data["content"] = content
    if isinstance(message, AssistantMessage):
        data["stopReason"] = message.stop_reason
        if message.error_message is not None:
            data["errorMessage"] = message.error_message
    data["timestamp"] = message.timestamp
    return data


def _part_to_json(part: TextContent | ToolCall) -> JsonValue:
    match part:
        case TextContent():
            return {"type": part.type, "text": part.text}
        case ToolCall():
            return {
                "type": part.type,
                "id": part.id,
                "name": part.name,
                "arguments": _json_copy(part.arguments),
            }
        case _:
            raise TypeError(f"content holds {type(part).__name__}, neither text nor tool call")


def _json_copy(value: JsonValue) -> Any:
    """Return a copy in JSON's own types: tuples become lists, and what JSON cannot write is an error here."""
    return json.loads(json.dumps(clone(value)))


def message_from_json(data: Mapping[str, Any]) -> AgentMessage:
    """Return the message that a wire form stands for, sharing nothing with it; unknown keys are ignored.

    Raises `ValueError` that names the wire field (`content[1].arguments`) where one is missing or has the
    wrong type or value, and where `role` is unknown. (Chapter 03)
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"message: expected an object, got {_shown(data)}")
    match _take(data, "role", str):
        case "user":
            return UserMessage(_text_parts(data), _take(data, "timestamp", int))
        case "assistant":
            return _assistant_from_json(data)
        case "toolResult":
            return ToolResultMessage(
                tool_call_id=_take(data, "toolCallId", str),
                tool_name=_take(data, "toolName", str),
                content=_text_parts(data),
                is_error=_take(data, "isError", bool),
                timestamp=_take(data, "timestamp", int),
                details=_detached(data.get("details"), "details"),
            )
        case role:
            raise ValueError(f'role: expected "user", "assistant" or "toolResult", got {role!r}')


def _assistant_from_json(data: Mapping[str, Any]) -> AssistantMessage:
    stop_reason: Any = _take(data, "stopReason", str)
    if stop_reason not in get_args(StopReason):
        raise ValueError(f"stopReason: {stop_reason!r} is none of {', '.join(get_args(StopReason))}")
    return AssistantMessage(
        content=_parts_from_json(data),
        stop_reason=stop_reason,
        timestamp=_take(data, "timestamp", int),
        error_message=_take(data, "errorMessage", str) if "errorMessage" in data else None,
    )


def _parts_from_json(data: Mapping[str, Any]) -> list[TextContent | ToolCall]:
    return [_part_from_json(part, f"content[{i}]") for i, part in enumerate(_take(data, "content", list))]


def _text_parts(data: Mapping[str, Any]) -> list[TextContent]:
    texts: list[TextContent] = []
    for i, part in enumerate(_parts_from_json(data)):
        if not isinstance(part, TextContent):
            raise ValueError(f'content[{i}].type: expected "text", got {part.type!r}')
        texts.append(part)
    return texts


def _part_from_json(part: Any, where: str) -> TextContent | ToolCall:
    if not isinstance(part, Mapping):
        raise ValueError(f"{where}: expected an object, got {_shown(part)}")
    match _take(part, "type", str, where):
        case "text":
            return TextContent(_take(part, "text", str, where))
        case "toolCall":
            return ToolCall(
                id=_take(part, "id", str, where),
                name=_take(part, "name", str, where),
                arguments=_detached(_take(part, "arguments", dict, where), f"{where}.arguments"),
            )
        case other:
            raise ValueError(f'{where}.type: expected "text" or "toolCall", got {other!r}')


_WIRE_NAMES = {str: "a string", int: "an integer", bool: "true or false", list: "an array", dict: "an object"}


def _take(data: Mapping[str, Any], name: str, kind: type[T], where: str = "") -> T:
    """Return a required field of exactly that type: to JSON `true` is no number."""
    value = data.get(name)
    if type(value) is not kind:
        field = f"{where}.{name}" if where else name
        found = _shown(value) if name in data else "nothing"
        raise ValueError(f"{field}: expected {_WIRE_NAMES[kind]}, got {found}")
    return value


def _shown(value: object) -> str:
    return "null" if value is None else f"a value of type {type(value).__name__}"


def _detached(value: T, where: str) -> T:
    try:
        return clone(value)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error
