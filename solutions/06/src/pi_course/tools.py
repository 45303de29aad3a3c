"""Tools at work: which ones there are, and how a call always becomes its one result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pi_course.messages import (
    TextContent,
    ToolCall,
    ToolResultMessage,
    message_from_json,
    message_to_json,
    now_ms,
)
from pi_course.model import ToolSchema
from pi_course.schema import ToolContext, ToolDefinition, ToolOutput, validate_arguments
from pi_course.values import JsonValue, clone


class ToolRegistryError(Exception):
    """A tool name that is taken, or that no tool has."""


class ToolRegistry:
    """The tools of a run by name, in the order in which they were registered. (Chapter 06)"""

    def __init__(self) -> None:
        self._tools: dict[str, ToolDefinition] = {}

    def register(self, *tools: ToolDefinition) -> None:
        """Add all tools, or none: `ToolRegistryError` where a name is taken or given twice."""
        added: dict[str, ToolDefinition] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ToolRegistryError(f"a tool named {tool.name!r} is registered already")
            if tool.name in added:
                raise ToolRegistryError(f"the tool name {tool.name!r} is given twice")
            added[tool.name] = tool
        self._tools.update(added)

    def get(self, name: str) -> ToolDefinition | None:
        """Return the very tool that was registered under that name, or `None`."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        """Return the names in registration order."""
        return list(self._tools)

    def schemas(self) -> list[ToolSchema]:
        """Return what a model is told of each tool, in registration order, as copies."""
        return [
            ToolSchema(tool.name, tool.description, clone(tool.parameters)) for tool in self._tools.values()
        ]


ToolExecutor: TypeAlias = Callable[[ToolCall, ToolContext], Awaitable[ToolResultMessage]]


async def execute_tool_call(
    call: ToolCall, registry: ToolRegistry, context: ToolContext
) -> ToolResultMessage:
    """Run one tool call and return its result, an error result whatever goes wrong.

    An unknown tool, arguments that do not fit, an exception, a `CancelledError` of the tool's own, an output
    that no session could write and a signal aborted beforehand all give `is_error=True` with the reason as
    text. The tool works on a copy of the arguments; a signal aborted meanwhile is the tool's to heed.
    Cancelling the caller raises `CancelledError` here, even where the tool swallows it. (Chapter 06)
    """
    caller = asyncio.current_task()
    cancels = caller.cancelling() if caller else 0
    try:
        result = await _run(call, registry, context)
    except asyncio.CancelledError:
        if caller is None or caller.cancelling():
            raise
        result = error_result(call, "the tool cancelled itself")
    except Exception as error:  # noqa: BLE001 - a failing tool is an answer to the model, not the end of a run
        result = error_result(call, _described(error))
    if caller is not None and caller.cancelling() > cancels:
        raise asyncio.CancelledError
    return result


def error_result(call: ToolCall, text: str, *, details: JsonValue = None) -> ToolResultMessage:
    """Return the error result that pairs `call`, stamped with the present."""
    return ToolResultMessage(call.id, call.name, [TextContent(text)], True, now_ms(), details)


async def _run(call: ToolCall, registry: ToolRegistry, context: ToolContext) -> ToolResultMessage:
    context.signal.throw_if_aborted()
    tool = registry.get(call.name)
    if tool is None:
        raise ToolRegistryError(f"there is no tool named {call.name!r}")
    validate_arguments(tool, call.arguments)
    return _result_of(call, await tool.execute(clone(call.arguments), context))


def _result_of(call: ToolCall, output: object) -> ToolResultMessage:
    """Return a tool's output as the result of its call, detached from what the tool may keep."""
    if isinstance(output, str):
        output = ToolOutput([TextContent(output)])
    if not isinstance(output, ToolOutput):
        raise TypeError(f"a tool gives back ToolOutput or text, not {type(output).__name__}")
    result = ToolResultMessage(call.id, call.name, output.content, False, now_ms(), output.details)
    message_from_json(message_to_json(result))  # what cannot be written and read is this tool's failure
    return clone(result)


def _described(error: Exception) -> str:
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - an error that cannot even be printed still gets its result
        return kind
