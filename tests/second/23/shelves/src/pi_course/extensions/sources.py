"""The records of the pipeline: where an extension comes from, what it registers, shares, does wrong."""

# Paths are strings here, spelled as they were given.
# ruff: noqa: PTH100, PTH120

import asyncio
import dataclasses
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pi_course.resources import ExtensionError
from pi_course.schema import ToolDefinition
from pi_course.values import JsonValue

StrPath: TypeAlias = str | os.PathLike[str]
Scope: TypeAlias = Literal["project", "user", "temporary"]
Origin: TypeAlias = Literal["top-level", "package"]
Handler: TypeAlias = Callable[[Any], object]
FlagType: TypeAlias = Literal["boolean", "string"]
FlagValue: TypeAlias = bool | str

EXTENSION_FAULTS = (Exception, SystemExit)  # what an extension's code may do wrong: an exit is no end
CALLBACK_FAULTS = (*EXTENSION_FAULTS, asyncio.CancelledError)  # of a plain call, which nobody can cancel


@dataclass(frozen=True, slots=True)
class PathMetadata:
    """How a path came in.

    `source` is `"cli"`, `"local"` (a settings path), `"auto"` (found in an extensions folder),
    `"entry-point"`, or the package as the settings name it; `base_dir` is what its patterns are relative to.
    """

    source: str
    scope: Scope
    origin: Origin
    base_dir: str | None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where something registered comes from, for people to read."""

    path: str
    source: str
    scope: Scope
    origin: Origin
    base_dir: str | None


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path to load from, absolute or `<label:name>`; a disabled one is listed and not loaded."""

    path: str
    metadata: PathMetadata
    enabled: bool


@dataclass(frozen=True, slots=True)
class LoadError:
    """What went wrong with one path; the others go on."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class ExtensionFault:
    """What went wrong at `event` in an extension and stopped nobody else."""

    path: str
    event: str
    error: str


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool and where it comes from."""

    definition: ToolDefinition
    source_info: SourceInfo


@dataclass(frozen=True, slots=True)
class RegisteredCommand:
    """A command; `handler(args, context)` is plain or async."""

    name: str
    handler: Callable[[str, Any], object]
    description: str
    source_info: SourceInfo


@dataclass(frozen=True, slots=True)
class ExtensionFlag:
    """A flag as it was declared; its value is in `ExtensionRuntime.flag_values`."""

    name: str
    type: FlagType
    default: FlagValue | None
    description: str


@dataclass(frozen=True, slots=True)
class ExtensionShortcut:
    """A key; `handler(context)` is plain or async."""

    key: str
    handler: Handler
    description: str


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a local command gave; `killed` where its time was up."""

    stdout: str
    stderr: str
    code: int
    killed: bool


@dataclass(eq=False)
class Extension:
    """What one factory registered, each by its name or key, and handlers by their event."""

    path: str  # as it was resolved, or `<label:name>`
    resolved_path: str  # canonical
    source_info: SourceInfo
    handlers: dict[str, list[Handler]] = field(default_factory=dict)
    tools: dict[str, RegisteredTool] = field(default_factory=dict)
    commands: dict[str, RegisteredCommand] = field(default_factory=dict)
    flags: dict[str, ExtensionFlag] = field(default_factory=dict)
    shortcuts: dict[str, ExtensionShortcut] = field(default_factory=dict)
    message_renderers: dict[str, Callable[..., object]] = field(default_factory=dict)
    entry_renderers: dict[str, Callable[..., object]] = field(default_factory=dict)

    def apply_source_info(self, info: SourceInfo) -> None:
        """Put the real source on the extension, its tools and its commands. (Chapter 23, Lab 23.6)"""
        self.source_info = info
        self.tools.update(
            {name: dataclasses.replace(tool, source_info=info) for name, tool in self.tools.items()}
        )
        self.commands.update(
            {name: dataclasses.replace(command, source_info=info) for name, command in self.commands.items()}
        )


def _refuse(*_: object) -> Any:
    """Stand in for an action that the host does not offer. (Chapter 23, Lab 23.5)"""
    raise ExtensionError("the host does not offer this action")


@dataclass(frozen=True, kw_only=True)
class RuntimeActions:
    """The core's side of the actions: the slots that `ExtensionRuntime.bind` fills."""

    send_message: Callable[[str], object] = _refuse
    append_entry: Callable[[str, JsonValue], Awaitable[object]] = _refuse
    get_active_tools: Callable[[], list[str]] = _refuse
    set_active_tools: Callable[[Sequence[str]], object] = _refuse
    refresh_tools: Callable[[], object] = _refuse  # a tool was registered after binding
    set_model: Callable[[Any], object] = _refuse
    compact: Callable[[str | None], Awaitable[object]] = _refuse
    abort: Callable[[object], object] = _refuse
    register_provider: Callable[[str, JsonValue], object] = _refuse
    unregister_provider: Callable[[str], object] = _refuse


def canonical_path(path: StrPath) -> str:
    """Return the real path, or the absolute path where it does not resolve: missing, or a loop of links.

    A virtual path such as `<inline:1>` stays as it is. (Chapter 23, Lab 23.1)
    """
    text = os.fspath(path)
    if is_virtual(text):
        return text
    try:
        return os.path.realpath(text, strict=True)
    except (OSError, ValueError):  # ValueError: a NUL byte
        return os.path.abspath(text)


def is_virtual(path: str) -> bool:
    """Tell a label such as `<entry-point:NAME>` from a path of the file system. (Chapter 23, Lab 23.1)"""
    return path.startswith("<") and path.endswith(">")


def synthetic_source_info(path: str, resolved_path: str) -> SourceInfo:
    """Return what a path alone tells of its source, until the resource loader says more.

    The source is `local`, or the label of `<label:name>`; the base directory is that of a file.
    (Chapter 23, Lab 23.2)
    """
    if is_virtual(path):
        return SourceInfo(path, path[1:-1].partition(":")[0], "temporary", "top-level", None)
    return SourceInfo(path, "local", "temporary", "top-level", os.path.dirname(resolved_path))


def described(error: BaseException) -> str:
    """Say what was raised, by kind and message; the kind alone where there is no message to be had."""
    return ": ".join(filter(None, (type(error).__name__, message_of(error))))


def message_of(error: BaseException) -> str:
    """Return an error's message, even of one that can't make it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the error's own __str__ is an extension's code, too
        return ""


async def settle(value: Any) -> Any:
    """Return what a plain or async callable gave, once it is there."""
    return await value if inspect.isawaitable(value) else value
