"""The runner: in which order extensions are asked, and what becomes of several answers and equal names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

from pi_course.extensions.api import ExtensionRuntime
from pi_course.extensions.sources import (
    Extension,
    ExtensionFault,
    ExtensionFlag,
    ExtensionShortcut,
    RegisteredCommand,
    RegisteredTool,
)
from pi_course.messages import AgentMessage, ToolCall, ToolResultMessage, UserMessage


class ExtensionEvent(SimpleNamespace):
    """What a handler gets: `type`, the live `context`, and what stands in its row; `None` is no answer.

    tool_call           call (arguments editable)    {"block": bool, "reason": str}
    tool_result         result                       any of {"content": list, "details": …, "is_error": bool}
    input               text                         {"action": "continue"}, {"action": "handled"} or
                                                     {"action": "transform", "text": str}
    context             messages (editable)          {"messages": list}
    before_agent_start  prompt, system_prompt        any of {"message": UserMessage, "system_prompt": str}
    session_before_*    what the emitter gives       {"cancel": bool}
    project_trust                                    "yes", "no" or "undecided"
    resources_discover  reason                       a list of roots for chapter 12's discover_resources
    """

    def __init__(self, type: str, **data: Any) -> None:
        super().__init__(type=type, **data)


ErrorListener: TypeAlias = Callable[[ExtensionFault], object]
Subscription: TypeAlias = tuple[Extension, Callable[[Any], object]]


@dataclass(frozen=True)
class ToolCallVerdict:
    """Whether a tool may run, and with which call; of a block, the extension's path and its reason."""

    call: ToolCall
    blocked: bool = False
    reason: str = ""
    path: str | None = None


@dataclass(frozen=True)
class InputVerdict:
    """The user's text as it goes on, unless an extension has handled it."""

    text: str
    handled: bool = False


@dataclass(frozen=True)
class BeforeAgentStart:
    """The messages that extensions add to a run, and the system prompt it gets."""

    messages: list[UserMessage]
    system_prompt: str


class RunnerContext:
    """A live view for handlers: every look shows the present, and raises once the runtime is stale."""

    # TODO(23.4): the constructor is yours.

    @property
    def cwd(self) -> str:
        """The project's directory."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    @property
    def host(self) -> object | None:
        """What the host gave to `AgentSession.bind`."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    @property
    def active_tools(self) -> list[str]:
        """The names of the tools in use."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")


class ExtensionRunner:
    """The loaded extensions in their order: whom to ask, and what wins. (Chapter 23, Lab 23.4)

    Handlers, plain or async, are asked one after another, by extension and then by registration; each gets an
    event with a live `context`. `tool_call` fails closed; at any other event a fault goes to the error
    listeners, and the next handler is asked. Hardened: an answer that its event doesn't know is a fault too,
    or a policy with a typing error would pass for an allowance.
    """

    def __init__(self, extensions: Sequence[Extension], runtime: ExtensionRuntime, *, cwd: str) -> None:
        # TODO(23.4): `extensions`, `runtime` and `cwd` are public, and so is `host`, which is None at first.
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def tools(self) -> dict[str, RegisteredTool]:
        """Return the tools by name; of equal names the first extension's."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def flags(self) -> dict[str, ExtensionFlag]:
        """Return the flags by name; of equal names the first extension's."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def commands(self) -> dict[str, RegisteredCommand]:
        """Return every command by what invokes it: a name used once, else `name:k` in load order.

        k is raised while that is taken: `review`, `review`, `review:1` give review:1, review:2, review:1:2.
        """
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def shortcuts(self) -> dict[str, ExtensionShortcut]:
        """Return the shortcuts by key; of equal keys the last extension's, with a warning in the log."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def on_error(self, listener: ErrorListener) -> None:
        """Call the listener with every fault; what it raises is logged, no more."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def create_context(self) -> RunnerContext:
        """Return a live view for a handler."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit(self, event: ExtensionEvent) -> list[Any]:
        """Tell every handler of the event's type; returns the answers that are not `None`."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit_tool_call(self, call: ToolCall) -> ToolCallVerdict:
        """Ask whether a tool may run; the first block, or fault, ends it. Arguments edited go on to the tool.

        Hardened: an edit after the handler's answer is not seen, or a call could change once it was allowed.
        """
        # TODO(23.4): the one event that fails closed.
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit_tool_result(self, result: ToolResultMessage) -> ToolResultMessage:
        """Return the result with every handler's patch, each seeing those before it.

        The keys that are there decide: `False` and `None` are patches, too.
        """
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit_input(self, text: str) -> InputVerdict:
        """Return the user's text as the handlers transform it, or that one of them has handled it."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit_context(self, messages: Sequence[AgentMessage]) -> list[AgentMessage]:
        """Return the messages for the model: one deep copy, which the handlers edit or replace."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit_before_agent_start(self, prompt: str, system_prompt: str) -> BeforeAgentStart:
        """Return what a run begins with: each handler sees the system prompt of those before it."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def emit_session_before(self, event: ExtensionEvent) -> bool:
        """Tell whether a handler cancels what a `session_before_*` event announces; the first one ends it."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def handlers(self, event_type: str) -> list[Subscription]:
        """Return the handlers of an event, with their extensions, in the order in which they are asked."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    async def ask(self, handler: Subscription, event: ExtensionEvent, *, fail_closed: bool = False) -> Any:
        """Return a handler's answer; where there is only a fault, report it and return `None` or a block.

        An exit and a CancelledError of the handler's own are faults, too.
        """
        # TODO(23.4): the one place where a handler is called.
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")

    def report(self, fault: ExtensionFault) -> None:
        """Tell the error listeners of an extension's fault."""
        raise NotImplementedError("Lab 23.4 ExtensionRunner 尚未实现")
