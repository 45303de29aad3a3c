"""Tool definitions: what a tool takes, what it gives back, and whether given arguments fit."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from pi_course.messages import TextContent
from pi_course.signals import AbortSignal
from pi_course.values import JsonValue, clone
from referencing import Registry
from referencing.exceptions import Unresolvable


class ToolArgumentError(ValueError):
    """Arguments that a tool cannot take; the text says where (`$.path`) and why."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may know of its run; a long one watches `signal`."""

    signal: AbortSignal


@dataclass(slots=True)
class ToolOutput:
    """What a tool gives back: `content` for the model, `details` for programs."""

    content: list[TextContent]
    details: JsonValue = None


ToolFunction: TypeAlias = Callable[[dict[str, Any], ToolContext], Awaitable[ToolOutput | str]]


@dataclass(frozen=True, slots=True, eq=False)
class ToolDefinition:
    """A tool: what the model is told of it, and the coroutine function that does the work.

    `parameters` is a JSON Schema (draft 2020-12 unless its `$schema` says otherwise) of the arguments object.
    Two definitions are equal only where they are the same object. (Chapter 05)
    """

    name: str
    description: str
    parameters: dict[str, JsonValue]
    execute: ToolFunction


_SHOWN_ERRORS = 5
_SHOWN_CHARACTERS = 300  # of each message, which may quote the value that is wrong


def validate_arguments(tool: ToolDefinition, arguments: Mapping[str, JsonValue]) -> None:
    """Check arguments, frozen ones too, against the tool's schema; nothing is changed or filled in.

    Raises `ToolArgumentError` with the `json_path` and message of the first few errors. It is raised as well
    where the arguments are no JSON object, and where the schema itself is bad or refers to something that it
    does not hold: schemas are never fetched. (Chapter 05)
    """
    validator = _validator(tool)
    try:
        plain = clone(arguments)
        if not isinstance(plain, dict):
            raise TypeError(f"arguments are a JSON object, not a {type(plain).__name__}")
        errors = list(islice(validator.iter_errors(plain), _SHOWN_ERRORS))
    except TypeError as error:
        raise ToolArgumentError(f"{tool.name}: $: {error}") from error
    except Unresolvable as error:
        raise ToolArgumentError(f"{tool.name}: bad schema: $: {error}") from error
    except RecursionError as error:
        raise ToolArgumentError(f"{tool.name}: $: nested too deeply") from error
    if errors:
        raise ToolArgumentError(f"{tool.name}: {'; '.join(map(_line, errors))}")


def _line(error: ValidationError | SchemaError) -> str:
    message = error.message
    if len(message) > _SHOWN_CHARACTERS:
        message = message[:_SHOWN_CHARACTERS] + "…"
    return f"{error.json_path}: {message}"


def _validator(tool: ToolDefinition) -> Validator:
    try:
        return _compiled(json.dumps(clone(tool.parameters)))
    except SchemaError as error:
        raise ToolArgumentError(f"{tool.name}: bad schema: {_line(error)}") from error
    except TypeError as error:
        raise ToolArgumentError(f"{tool.name}: bad schema: $: {error}") from error


@lru_cache(maxsize=256)
def _compiled(schema_text: str) -> Validator:
    """Return the validator of a schema, found good; kept by text, as checking a schema is what takes long."""
    schema = json.loads(schema_text)
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, registry=Registry())
