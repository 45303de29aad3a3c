"""What an extension may do: register in a container of its own, act through the runtime that all share."""

import asyncio
import contextlib
import inspect
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from pi_course.extensions.sources import (
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
    Share,
)
from pi_course.resources import ExtensionError
from pi_course.schema import ToolDefinition
from pi_course.values import JsonValue


def _ignore(fault: ExtensionFault) -> None:
    """Nobody is told of faults before `bind`."""


@dataclass(eq=False)
class ExtensionRuntime:
    """What the extensions of a load share; `flag_values` are those set and the first defaults."""

    flag_values: dict[str, FlagValue] = field(default_factory=dict)
    _defaults: dict[str, FlagValue] = field(default_factory=dict)
    _shares: dict[Extension, Share] = field(default_factory=dict)
    _actions: RuntimeActions | None = None
    _report: Callable[[ExtensionFault], object] = _ignore
    _ended: str | None = None

    @property
    def actions(self) -> RuntimeActions:
        """The core's actions; ExtensionError before `bind` and after `invalidate`."""
        self.assert_active()
        if self._actions is None:
            raise ExtensionError(
                "Extension runtime not initialized. Action methods cannot be called during extension loading."
            )
        return self._actions

    def bind(
        self, actions: RuntimeActions, on_error: Callable[[ExtensionFault], object] | None = None
    ) -> None:
        """Fill the action slots, then register the providers that are queued, in load order.

        One that fails is told to `on_error` and no more, as are faults of the bus's listeners from now on.
        """
        self.assert_active()
        self._actions = actions
        self._report = on_error or _ignore
        for extension, share in self._shares.items():
            self._flush(extension, share)

    def invalidate(self, reason: str) -> None:
        """End this runtime: its APIs raise with the first reason, its listeners are silent.

        Hardened: what an old load left running, a timer say, can't act on the session of the new one.
        """
        self._ended = self._ended or reason
        for share in self._shares.values():
            share.close()

    def assert_active(self) -> None:
        """Raise ExtensionError, with the reason, once the runtime has ended."""
        if self._ended is not None:
            raise ExtensionError(self._ended)

    def set_values(self) -> dict[str, FlagValue]:
        """Return the flag values that were set, without those that are defaults. (Chapter 23, Lab 23.6)"""
        return {name: value for name, value in self.flag_values.items() if self._defaults.get(name) != value}

    def _commit(self, extension: Extension, share: Share) -> None:
        self._shares[extension] = share
        for name, value in share.defaults.items():
            if name not in self.flag_values:
                self._defaults[name] = self.flag_values[name] = value
        if self._actions is not None:
            self._flush(extension, share)

    def _flush(self, extension: Extension, share: Share) -> None:
        queued, share.providers = share.providers, []
        for name, config in queued:
            try:
                self.actions.register_provider(name, config)
            except Exception as error:  # noqa: BLE001 - one bad provider is reported and no more
                self._report(ExtensionFault(extension.path, "register_provider", str(error)))


class ExtensionAPI:
    """What a factory gets: registration, which goes on working after it, and the actions of the core.

    Hardened: what a factory does to shared state is staged until it is done; if it fails, all that vanishes,
    and its API raises ExtensionError, as it does once the runtime has ended. (Chapter 23, Lab 23.3)
    """

    def __init__(self, extension: Extension, runtime: ExtensionRuntime, *, cwd: str) -> None:
        self._extension = extension
        self._runtime = runtime
        self._cwd = cwd
        self._share = Share()

    def commit(self) -> None:
        """The factory is done: make what it did to shared state visible. For the loader."""
        self._runtime._commit(self._extension, self._share)

    def discard(self) -> None:
        """The factory has failed: forget what it did to shared state. For the loader."""
        self._share.close()

    def on(self, event: str, handler: Handler) -> None:
        """Add a plain or async handler of an event, behind those that are there."""
        self._open(event, handler).handlers.setdefault(event, []).append(handler)

    def register_tool(self, tool: ToolDefinition) -> None:
        """Offer a tool; where the core is bound it is taken up at once."""
        _require(isinstance(tool, ToolDefinition), f"{tool!r} is no ToolDefinition")
        extension = self._open(tool.name)
        extension.tools[tool.name] = RegisteredTool(tool, extension.source_info)
        if self._is_bound():
            self._runtime.actions.refresh_tools()

    def register_command(
        self, name: str, handler: Callable[[str, Any], object], *, description: str = ""
    ) -> None:
        """Offer a command; `handler(args, context)` is plain or async."""
        extension = self._open(name, handler)
        extension.commands[name] = RegisteredCommand(name, handler, description, extension.source_info)

    def register_flag(
        self, name: str, *, type: FlagType, default: FlagValue | None = None, description: str = ""
    ) -> None:
        """Declare a flag: the last definition counts, the first default stays, and neither beats a set value.

        Hardened: a default that is not of the flag's type is an ExtensionError.
        """
        flag = ExtensionFlag(name, type, default, description)
        kind = {"boolean": bool, "string": str}.get(type)
        _require(kind is not None, f"a flag is boolean or string, not {type!r}")
        _require(default is None or default.__class__ is kind, f"the default of --{name} is no {type}")
        self._open(name).flags[name] = flag
        if default is not None:
            self._share.defaults.setdefault(name, default)
            if self._extension in self._runtime._shares:
                self.commit()

    def get_flag(self, name: str) -> FlagValue | None:
        """Return the value of a flag of this extension's own; None where it has none, and for any other."""
        if name not in self._open().flags:
            return None
        return self._runtime.flag_values.get(name, self._share.defaults.get(name))

    def register_shortcut(self, key: str, handler: Handler, *, description: str = "") -> None:
        """Offer a shortcut; `handler(context)` is plain or async."""
        self._open(key, handler).shortcuts[key] = ExtensionShortcut(key, handler, description)

    def register_message_renderer(self, kind: str, renderer: Callable[..., object]) -> None:
        """Offer a renderer of the messages of a kind."""
        self._open(kind, renderer).message_renderers[kind] = renderer

    def register_entry_renderer(self, kind: str, renderer: Callable[..., object]) -> None:
        """Offer a renderer of the session entries of a kind."""
        self._open(kind, renderer).entry_renderers[kind] = renderer

    def register_provider(self, name: str, config: JsonValue) -> None:
        """Add or replace a model provider: at once where the core is bound, else when it is."""
        self._open(name)
        if self._is_bound():
            self._runtime.actions.register_provider(name, config)
        else:
            self._share.providers.append((name, config))

    def unregister_provider(self, name: str) -> None:
        """Take a provider away, or out of the queue; hardened: there only what this extension put in."""
        self._open(name)
        if self._is_bound():
            self._runtime.actions.unregister_provider(name)
        else:
            self._share.providers[:] = [each for each in self._share.providers if each[0] != name]

    async def exec(
        self, command: str, args: Sequence[str] = (), *, cwd: str | None = None, timeout: float | None = None
    ) -> ExecResult:
        """Run a local command without a shell; kill its group after `timeout` seconds or where cancelled."""
        self._open(command)
        process = Popen(  # noqa: ASYNC220 - at once: no cancellation comes between
            [command, *args], cwd=cwd or self._cwd, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, process_group=0
        )
        reading = asyncio.ensure_future(asyncio.to_thread(process.communicate))
        try:
            await asyncio.wait({reading}, timeout=timeout)
        finally:
            killed = not reading.done()
            if killed:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            out, err = (data.decode(errors="replace") for data in await reading)
        return ExecResult(out, err, process.returncode, killed)

    @property
    def events(self) -> "ExtensionEvents":
        """The bus of all extensions of this load."""
        return ExtensionEvents(self)

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

    @property
    def _actions(self) -> RuntimeActions:
        self._open()
        return self._runtime.actions

    def _is_bound(self) -> bool:
        return self._extension in self._runtime._shares and self._runtime._actions is not None

    def _open(self, name: str = "-", function: object = _ignore) -> Extension:
        """Return the container while it is in use; check what is to be registered in it."""
        self._runtime.assert_active()
        _require(not self._share.closed, f"the extension {self._extension.path} is not loaded")
        _require(isinstance(name, str) and name != "", f"a name is a non-empty text, not {name!r}")
        _require(callable(function), f"{function!r} can't be called")
        return self._extension


class ExtensionEvents:
    """The bus, as one extension has it; it works from the factory on."""

    def __init__(self, api: ExtensionAPI) -> None:
        self._api = api

    def on(self, channel: str, listener: Handler) -> Callable[[], None]:
        """Let a plain function hear what is emitted on a channel; what is returned ends that."""
        self._api._open(channel, listener)
        _require(not inspect.iscoroutinefunction(listener), "a listener of the bus is a plain function")
        listeners = self._api._share.listeners.setdefault(channel, [])
        entry = partial(listener)  # an object of its own, where the same function listens twice
        listeners.append(entry)

        def end() -> None:
            if entry in listeners:
                listeners.remove(entry)

        return end

    def emit(self, channel: str, data: object = None) -> None:
        """Call the channel's listeners in load order; one that raises is reported, and the others follow."""
        runtime, extension = self._api._runtime, self._api._open(channel)
        for owner, share in {**runtime._shares, extension: self._api._share}.items():
            for listener in tuple(share.listeners.get(channel, ())):
                try:
                    if listener in share.listeners.get(channel, ()):  # one before it may have ended it
                        listener(data)
                except Exception as error:  # noqa: BLE001 - the others are to hear of it all the same
                    runtime._report(ExtensionFault(owner.path, channel, str(error)))


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ExtensionError(otherwise)
