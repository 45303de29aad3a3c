"""What an extension may do: register in a container of its own, act through the runtime that all share."""

# Paths are strings here, spelled as they were given.
# ruff: noqa: PTH118

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any

from pi_course.extensions.sources import (
    CALLBACK_FAULTS,
    ExecResult,
    Extension,
    ExtensionFault,
    ExtensionFlag,
    ExtensionShortcut,
    FlagType,
    FlagValue,
    Handler,
    RegisteredCommand,
    RegisteredTool,
    RuntimeActions,
    message_of,
)
from pi_course.resources import ExtensionError
from pi_course.schema import ToolDefinition
from pi_course.values import JsonValue

_NOT_BOUND = "Extension runtime not initialized. Action methods cannot be called during extension loading."
_FLAG_TYPES: dict[str, type] = {"boolean": bool, "string": str}
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Listener:
    channel: str
    call: Handler
    active: bool = True


@dataclass(eq=False)
class _Shelf:
    """What one extension adds to the state that all share; staged simply while it stands in no runtime."""

    extension: Extension
    defaults: dict[str, FlagValue] = field(default_factory=dict)
    providers: list[tuple[str, JsonValue]] = field(default_factory=list)  # queued until the core is bound
    listeners: list[_Listener] = field(default_factory=list)
    over: str | None = None  # why this extension may do nothing any more


@dataclass(eq=False)
class ExtensionRuntime:
    """What the extensions of a load share; `flag_values` are those set and the first defaults."""

    flag_values: dict[str, FlagValue] = field(default_factory=dict)
    _shelves: list[_Shelf] = field(init=False, repr=False, default_factory=list)  # in load order
    _defaults: dict[str, FlagValue] = field(init=False, repr=False, default_factory=dict)
    _actions: RuntimeActions | None = field(init=False, repr=False, default=None)
    _on_error: Callable[[ExtensionFault], object] | None = field(init=False, repr=False, default=None)
    _ended: str | None = field(init=False, repr=False, default=None)

    @property
    def actions(self) -> RuntimeActions:
        """The core's actions; ExtensionError before `bind` and after `invalidate`."""
        self.assert_active()
        if self._actions is None:
            raise ExtensionError(_NOT_BOUND)
        return self._actions

    def bind(
        self, actions: RuntimeActions, on_error: Callable[[ExtensionFault], object] | None = None
    ) -> None:
        """Fill the action slots, then register the providers that are queued, in load order.

        One that fails is told to `on_error` and no more, as are faults of the bus's listeners from now on.
        """
        self.assert_active()
        self._actions, self._on_error = actions, on_error
        for shelf in list(self._shelves):
            self._register_queued(shelf)

    def invalidate(self, reason: str) -> None:
        """End this runtime: its APIs raise with the first reason, its listeners are silent.

        Hardened: what an old load left running, a timer say, can't act on the session of the new one.
        """
        if self._ended is None:
            self._ended = reason

    def assert_active(self) -> None:
        """Raise ExtensionError, with the reason, once the runtime has ended."""
        if self._ended is not None:
            raise ExtensionError(self._ended)

    def set_values(self) -> dict[str, FlagValue]:
        """Return the flag values that were set, without those that are defaults. (Chapter 23, Lab 23.6)"""
        values, defaults = self.flag_values, self._defaults
        return {name: value for name, value in values.items() if defaults.get(name) != value}

    def arrange(self, extensions: Sequence[Extension]) -> None:
        """Give what all share the order of these extensions, without what others did. For the loader."""
        place = {id(extension): index for index, extension in enumerate(extensions)}
        unset = self.flag_values.keys() - self.set_values().keys()
        for shelf in self._shelves:
            if id(shelf.extension) not in place:
                shelf.over = "This extension is switched off."
        kept = [shelf for shelf in self._shelves if shelf.over is None]
        self._shelves = sorted(kept, key=lambda shelf: place[id(shelf.extension)])
        self._defaults.clear()
        for name in unset:
            del self.flag_values[name]
        for shelf in self._shelves:
            self._add_defaults(shelf)

    def _add(self, shelf: _Shelf) -> None:
        self._shelves.append(shelf)
        self._add_defaults(shelf)
        if self._actions is not None:
            self._register_queued(shelf)

    def _remove(self, shelf: _Shelf) -> None:
        if shelf in self._shelves:
            self._shelves.remove(shelf)

    def _add_defaults(self, shelf: _Shelf) -> None:
        for name, default in shelf.defaults.items():
            self._defaults.setdefault(name, default)
            self.flag_values.setdefault(name, self._defaults[name])

    def _register_queued(self, shelf: _Shelf) -> None:
        while shelf.providers and self._actions is not None:
            name, config = shelf.providers.pop(0)
            try:
                self._actions.register_provider(name, config)
            except CALLBACK_FAULTS as error:
                self._report(shelf, "register_provider", error)

    def _tell(self, sender: _Shelf, channel: str, data: object) -> None:
        """Call who listens now, in load order; the sender's own listeners even while they are staged."""
        shelves = self._shelves if sender in self._shelves else [*self._shelves, sender]
        for shelf, listener in [(owner, each) for owner in shelves for each in owner.listeners]:
            if listener.channel != channel or not listener.active or shelf.over or self._ended is not None:
                continue
            try:
                listener.call(data)
            except CALLBACK_FAULTS as error:
                self._report(shelf, channel, error)

    def _report(self, shelf: _Shelf, event: str, error: BaseException) -> None:
        if self._on_error is None:
            return
        try:
            self._on_error(ExtensionFault(shelf.extension.path, event, message_of(error)))
        except CALLBACK_FAULTS:
            _log.exception("the error listener of a runtime failed at %s", event)


class ExtensionAPI:
    """What a factory gets: registration, which goes on working after it, and the actions of the core.

    Hardened: what a factory does to shared state is staged until it is done; if it fails, all that vanishes,
    and its API raises ExtensionError, as it does once the runtime has ended. (Chapter 23, Lab 23.3)
    """

    def __init__(self, extension: Extension, runtime: ExtensionRuntime, *, cwd: str) -> None:
        self._extension = extension
        self._runtime = runtime
        self._cwd = cwd
        self._shelf = _Shelf(extension)
        self._staged = True
        self._events = ExtensionEvents(self)

    def commit(self) -> None:
        """The factory is done: make what it did to shared state visible. For the loader."""
        self._assert_usable()
        if self._staged:
            self._staged = False
            self._runtime._add(self._shelf)

    def discard(self) -> None:
        """The factory has failed: forget what it did to shared state. For the loader."""
        self._shelf.over = "The factory of this extension has failed."
        self._runtime._remove(self._shelf)

    def _assert_usable(self) -> None:
        self._runtime.assert_active()
        if self._shelf.over is not None:
            raise ExtensionError(self._shelf.over)

    def _admit(self, name: object, *functions: object) -> None:
        """Refuse a registration that nobody could use."""
        self._assert_usable()
        self._require(isinstance(name, str) and name != "", f"a name is a non-empty string, not {name!r}")
        for function in functions:
            self._require(callable(function), f"{function!r} can't be called")

    def _require(self, condition: bool, otherwise: str) -> None:
        if not condition:
            raise ExtensionError(f"extension {self._extension.path}: {otherwise}")

    @property
    def _actions(self) -> RuntimeActions:
        self._assert_usable()
        return self._runtime.actions

    @property
    def _acts(self) -> bool:
        """Whether shared things happen at once: the factory is done and the core is bound."""
        return not self._staged and self._runtime._actions is not None

    def on(self, event: str, handler: Handler) -> None:
        """Add a plain or async handler of an event, behind those that are there."""
        self._admit(event, handler)
        self._extension.handlers.setdefault(event, []).append(handler)

    def register_tool(self, tool: ToolDefinition) -> None:
        """Offer a tool; where the core is bound it is taken up at once."""
        self._assert_usable()
        self._require(isinstance(tool, ToolDefinition), f"{tool!r} is no ToolDefinition")
        self._admit(tool.name)
        self._extension.tools[tool.name] = RegisteredTool(tool, self._extension.source_info)
        if self._runtime._actions is not None:
            self._runtime.actions.refresh_tools()

    def register_command(
        self, name: str, handler: Callable[[str, Any], object], *, description: str = ""
    ) -> None:
        """Offer a command; `handler(args, context)` is plain or async."""
        self._admit(name, handler)
        command = RegisteredCommand(name, handler, description, self._extension.source_info)
        self._extension.commands[name] = command

    def register_flag(
        self, name: str, *, type: FlagType, default: FlagValue | None = None, description: str = ""
    ) -> None:
        """Declare a flag: the last definition counts, the first default stays, and neither beats a set value.

        Hardened: a default that is not of the flag's type is an ExtensionError.
        """
        self._admit(name)
        self._require(type in tuple(_FLAG_TYPES), f"there is no flag type {type!r}")
        fits = default is None or isinstance(default, _FLAG_TYPES[type])
        self._require(fits, f"the default {default!r} of the flag {name!r} is no {type}")
        self._extension.flags[name] = ExtensionFlag(name, type, default, description)
        if default is not None:
            self._shelf.defaults.setdefault(name, default)
            if not self._staged:
                self._runtime._add_defaults(self._shelf)

    def get_flag(self, name: str) -> FlagValue | None:
        """Return the value of a flag of this extension's own; None where it has none, and for any other."""
        self._assert_usable()
        if name not in self._extension.flags:
            return None
        return self._runtime.flag_values.get(name, self._shelf.defaults.get(name))

    def register_shortcut(self, key: str, handler: Handler, *, description: str = "") -> None:
        """Offer a shortcut; `handler(context)` is plain or async."""
        self._admit(key, handler)
        self._extension.shortcuts[key] = ExtensionShortcut(key, handler, description)

    def register_message_renderer(self, kind: str, renderer: Callable[..., object]) -> None:
        """Offer a renderer of the messages of a kind."""
        self._admit(kind, renderer)
        self._extension.message_renderers[kind] = renderer

    def register_entry_renderer(self, kind: str, renderer: Callable[..., object]) -> None:
        """Offer a renderer of the session entries of a kind."""
        self._admit(kind, renderer)
        self._extension.entry_renderers[kind] = renderer

    def register_provider(self, name: str, config: JsonValue) -> None:
        """Add or replace a model provider: at once where the core is bound, else when it is."""
        self._admit(name)
        if self._acts:
            self._actions.register_provider(name, config)
        else:
            self._shelf.providers.append((name, config))

    def unregister_provider(self, name: str) -> None:
        """Take a provider away, or out of the queue; hardened: there only what this extension put in."""
        self._admit(name)
        if self._acts:
            self._actions.unregister_provider(name)
        else:
            self._shelf.providers[:] = [queued for queued in self._shelf.providers if queued[0] != name]

    async def exec(
        self, command: str, args: Sequence[str] = (), *, cwd: str | None = None, timeout: float | None = None
    ) -> ExecResult:
        """Run a local command without a shell; kill its group after `timeout` seconds or where cancelled."""
        self._assert_usable()
        folder = self._cwd if cwd is None else os.path.join(self._cwd, cwd)
        return await _run_program([command, *args], folder, timeout)

    @property
    def events(self) -> "ExtensionEvents":
        """The bus of all extensions of this load."""
        return self._events

    def send_message(self, text: str) -> None:
        """Hand a user message to the agent."""
        self._actions.send_message(text)

    def append_entry(self, kind: str, data: JsonValue = None) -> Awaitable[object]:
        """Add a metadata entry to the session."""
        return self._actions.append_entry(kind, data)

    def get_active_tools(self) -> list[str]:
        """Return the names of the tools that the model may use."""
        return self._actions.get_active_tools()

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Let the model use these tools and no others."""
        self._actions.set_active_tools(names)

    def set_model(self, model: Any) -> None:
        """Use another model from the next request on."""
        self._actions.set_model(model)

    def compact(self, instructions: str | None = None) -> Awaitable[object]:
        """Compact the session."""
        return self._actions.compact(instructions)

    def abort(self, reason: object = None) -> None:
        """Stop the present run."""
        self._actions.abort(reason)


class ExtensionEvents:
    """The bus, as one extension has it; it works from the factory on."""

    def __init__(self, api: ExtensionAPI) -> None:
        self._api = api

    def on(self, channel: str, listener: Handler) -> Callable[[], None]:
        """Let a plain function hear what is emitted on a channel; what is returned ends that."""
        api = self._api
        api._admit(channel, listener)
        is_async = iscoroutinefunction(listener) or iscoroutinefunction(type(listener).__call__)
        api._require(not is_async, f"{listener!r} is a coroutine function, and nobody would await it")
        entry = _Listener(channel, listener)
        api._shelf.listeners.append(entry)

        def end() -> None:
            entry.active = False
            with contextlib.suppress(ValueError):  # ended before
                api._shelf.listeners.remove(entry)

        return end

    def emit(self, channel: str, data: object = None) -> None:
        """Call the channel's listeners in load order; one that raises is reported, and the others follow."""
        self._api._assert_usable()
        self._api._runtime._tell(self._api._shelf, channel, data)


async def _run_program(argv: Sequence[str], cwd: str, timeout: float | None) -> ExecResult:
    """Run a program in a process group of its own, which outlives neither its time nor its caller's wait."""
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=cwd, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    stdout, stderr = bytearray(), bytearray()
    pumps = [_pump(process.stdout, stdout), _pump(process.stderr, stderr)]
    work = [asyncio.ensure_future(each) for each in (process.wait(), *pumps)]
    killed = True
    try:
        _, late = await asyncio.wait(work, timeout=timeout)
        killed = bool(late)
    finally:
        if killed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait(work, timeout=1)  # no longer: who left the group may hold the pipes
            for each in work:
                each.cancel()
            process._transport.close()  # type: ignore[attr-defined] # else the pipes stay open
    code = -signal.SIGKILL if killed else process.returncode or 0
    return ExecResult(stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"), code, killed)


async def _pump(stream: asyncio.StreamReader | None, sink: bytearray) -> None:
    """Take in what is written, so that it is there whenever the program is killed."""
    while stream is not None and (chunk := await stream.read(65536)):
        sink.extend(chunk)
