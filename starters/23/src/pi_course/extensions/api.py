"""What an extension may do: register in a container of its own, act through the runtime that all share."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pi_course.extensions.sources import (
    ExecResult,
    Extension,
    ExtensionFault,
    FlagType,
    FlagValue,
    Handler,
    RuntimeActions,
)
from pi_course.schema import ToolDefinition
from pi_course.values import JsonValue


@dataclass(eq=False)
class ExtensionRuntime:
    """What the extensions of a load share; `flag_values` are those set and the first defaults."""

    flag_values: dict[str, FlagValue] = field(default_factory=dict)

    @property
    def actions(self) -> RuntimeActions:
        """The core's actions; ExtensionError before `bind` and after `invalidate`."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def bind(
        self, actions: RuntimeActions, on_error: Callable[[ExtensionFault], object] | None = None
    ) -> None:
        """Fill the action slots, then register the providers that are queued, in load order.

        One that fails is told to `on_error` and no more, as are faults of the bus's listeners from now on.
        """
        # TODO(23.3): the actions, then the queue.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def invalidate(self, reason: str) -> None:
        """End this runtime: its APIs raise with the first reason, its listeners are silent.

        Hardened: what an old load left running, a timer say, can't act on the session of the new one.
        """
        # TODO(23.3): an end.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def assert_active(self) -> None:
        """Raise ExtensionError, with the reason, once the runtime has ended."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def set_values(self) -> dict[str, FlagValue]:
        """Return the flag values that were set, without those that are defaults. (Chapter 23, Lab 23.6)"""
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")


class ExtensionAPI:
    """What a factory gets: registration, which goes on working after it, and the actions of the core.

    Hardened: what a factory does to shared state is staged until it is done; if it fails, all that vanishes,
    and its API raises ExtensionError, as it does once the runtime has ended. (Chapter 23, Lab 23.3)
    """

    def __init__(self, extension: Extension, runtime: ExtensionRuntime, *, cwd: str) -> None:
        self._extension = extension
        self._runtime = runtime
        self._cwd = cwd

    def commit(self) -> None:
        """The factory is done: make what it did to shared state visible. For the loader."""
        # TODO(23.3): nothing is staged yet, so there is nothing to do.

    def discard(self) -> None:
        """The factory has failed: forget what it did to shared state. For the loader."""
        # TODO(23.3): nothing is staged yet, so there is nothing to do.

    def on(self, event: str, handler: Handler) -> None:
        """Add a plain or async handler of an event, behind those that are there."""
        # TODO(23.3): write into the extension's own container; likewise below.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_tool(self, tool: ToolDefinition) -> None:
        """Offer a tool; where the core is bound it is taken up at once."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_command(
        self, name: str, handler: Callable[[str, Any], object], *, description: str = ""
    ) -> None:
        """Offer a command; `handler(args, context)` is plain or async."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_flag(
        self, name: str, *, type: FlagType, default: FlagValue | None = None, description: str = ""
    ) -> None:
        """Declare a flag: the last definition counts, the first default stays, and neither beats a set value.

        Hardened: a default that is not of the flag's type is an ExtensionError.
        """
        # TODO(23.3): the definition, and a default that is staged.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def get_flag(self, name: str) -> FlagValue | None:
        """Return the value of a flag of this extension's own; None where it has none, and for any other."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_shortcut(self, key: str, handler: Handler, *, description: str = "") -> None:
        """Offer a shortcut; `handler(context)` is plain or async."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_message_renderer(self, kind: str, renderer: Callable[..., object]) -> None:
        """Offer a renderer of the messages of a kind."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_entry_renderer(self, kind: str, renderer: Callable[..., object]) -> None:
        """Offer a renderer of the session entries of a kind."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def register_provider(self, name: str, config: JsonValue) -> None:
        """Add or replace a model provider: at once where the core is bound, else when it is."""
        # TODO(23.3): act, or queue.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def unregister_provider(self, name: str) -> None:
        """Take a provider away, or out of the queue; hardened: there only what this extension put in."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    async def exec(
        self, command: str, args: Sequence[str] = (), *, cwd: str | None = None, timeout: float | None = None
    ) -> ExecResult:
        """Run a local command without a shell; kill its group after `timeout` seconds or where cancelled."""
        # TODO(23.3): a process, with an end.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    @property
    def events(self) -> "ExtensionEvents":
        """The bus of all extensions of this load."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def send_message(self, text: str) -> None:
        """Hand a user message to the agent."""
        # TODO(23.3): hand on to the runtime's actions; likewise below.
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def append_entry(self, kind: str, data: JsonValue = None) -> Awaitable[object]:
        """Add a metadata entry to the session."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def get_active_tools(self) -> list[str]:
        """Return the names of the tools that the model may use."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Let the model use these tools and no others."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def set_model(self, model: Any) -> None:
        """Use another model from the next request on."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def compact(self, instructions: str | None = None) -> Awaitable[object]:
        """Compact the session."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def abort(self, reason: object = None) -> None:
        """Stop the present run."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")


class ExtensionEvents:
    """The bus, as one extension has it; it works from the factory on."""

    def __init__(self, api: ExtensionAPI) -> None:
        self._api = api

    def on(self, channel: str, listener: Handler) -> Callable[[], None]:
        """Let a plain function hear what is emitted on a channel; what is returned ends that."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")

    def emit(self, channel: str, data: object = None) -> None:
        """Call the channel's listeners in load order; one that raises is reported, and the others follow."""
        raise NotImplementedError("Lab 23.3 ExtensionAPI 尚未实现")
