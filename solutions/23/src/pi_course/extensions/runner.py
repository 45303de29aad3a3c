"""The runner: in which order extensions are asked, and what becomes of several answers and equal names."""

import asyncio
import inspect
import json
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

from pi_course.extensions.api import ExtensionRuntime
from pi_course.extensions.sources import (
    Extension,
    ExtensionFault,
    ExtensionFlag,
    ExtensionShortcut,
    RegisteredCommand,
    RegisteredTool,
)
from pi_course.messages import AgentMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_course.values import clone

T = TypeVar("T")

_log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class RunnerContext:
    """A live view for handlers: every look shows the present, and raises once the runtime is stale."""

    _runner: "ExtensionRunner"

    @property
    def cwd(self) -> str:
        """The project's directory."""
        return self._live().cwd

    @property
    def host(self) -> object | None:
        """What the host gave to `AgentSession.bind`."""
        return self._live().host

    @property
    def active_tools(self) -> list[str]:
        """The names of the tools in use."""
        return self._live().runtime.actions.get_active_tools()

    def _live(self) -> "ExtensionRunner":
        self._runner.runtime.assert_active()
        return self._runner


class ExtensionRunner:
    """The loaded extensions in their order: whom to ask, and what wins. (Chapter 23, Lab 23.4)

    Handlers are asked one after another, by extension and then by registration. `tool_call` fails closed; at
    any other event a fault goes to the error listeners, and the next handler is asked. Hardened: an answer
    that its event doesn't know is a fault too, or a policy with a typing error would pass for an allowance.
    """

    def __init__(self, extensions: Sequence[Extension], runtime: ExtensionRuntime, *, cwd: str) -> None:
        self.extensions = list(extensions)
        self.runtime = runtime
        self.cwd = cwd
        self.host: object | None = None
        self._listeners: list[ErrorListener] = []

    def tools(self) -> dict[str, RegisteredTool]:
        """Return the tools by name; of equal names the first extension's."""
        return _first_wins(extension.tools for extension in self.extensions)

    def flags(self) -> dict[str, ExtensionFlag]:
        """Return the flags by name; of equal names the first extension's."""
        return _first_wins(extension.flags for extension in self.extensions)

    def commands(self) -> dict[str, RegisteredCommand]:
        """Return every command by what invokes it: a name used once, else `name:k` in load order.

        k is raised while that is taken: `review`, `review`, `review:1` give review:1, review:2, review:1:2.
        """
        found = [item for extension in self.extensions for item in extension.commands.items()]
        uses = Counter(name for name, _ in found)
        seen: Counter[str] = Counter()
        invocable: dict[str, RegisteredCommand] = {}
        for name, command in found:
            k = seen[name] = seen[name] + 1
            invocation = name if uses[name] == 1 else f"{name}:{k}"
            while invocation in invocable:
                k += 1
                invocation = f"{name}:{k}"
            invocable[invocation] = command
        return invocable

    def shortcuts(self) -> dict[str, ExtensionShortcut]:
        """Return the shortcuts by key; of equal keys the last extension's, with a warning in the log."""
        winners: dict[str, ExtensionShortcut] = {}
        for extension in self.extensions:
            for key in winners.keys() & extension.shortcuts.keys():
                _log.warning("shortcut %s: %s takes the place of %s", key, extension.path, winners[key])
            winners |= extension.shortcuts
        return winners

    def on_error(self, listener: ErrorListener) -> None:
        """Call the listener with every fault; what it raises is logged, no more."""
        self._listeners.append(listener)

    def create_context(self) -> RunnerContext:
        """Return a live view for a handler."""
        return RunnerContext(self)

    async def emit(self, event: ExtensionEvent) -> list[Any]:
        """Tell every handler of the event's type; returns the answers that are not `None`."""
        answers = [await self.ask(each, event) for each in self.handlers(event.type)]
        return [answer for answer in answers if answer is not None]

    async def emit_tool_call(self, call: ToolCall) -> ToolCallVerdict:
        """Ask whether a tool may run; the first block, or fault, ends it. Arguments edited go on to the tool.

        Hardened: an edit after the handler's answer is not seen, or a call could change once it was allowed.
        """
        allowed = clone(call)
        for each in self.handlers("tool_call"):
            event = ExtensionEvent("tool_call", call=clone(allowed))
            answer = await self.ask(each, event, fail_closed=True) or {}
            if answer.get("block"):
                return ToolCallVerdict(allowed, True, answer.get("reason", ""), each[0].path)
            allowed = ToolCall(call.id, call.name, clone(event.call.arguments))
        return ToolCallVerdict(allowed)

    async def emit_tool_result(self, result: ToolResultMessage) -> ToolResultMessage:
        """Return the result with every handler's patch, each seeing those before it."""
        current = clone(result)
        for each in self.handlers("tool_result"):
            patch = await self.ask(each, ExtensionEvent("tool_result", result=clone(current))) or {}
            current = clone(replace(current, **patch))
        return current

    async def emit_input(self, text: str) -> InputVerdict:
        """Return the user's text as the handlers transform it, or that one of them has handled it."""
        for each in self.handlers("input"):
            answer = await self.ask(each, ExtensionEvent("input", text=text)) or {}
            if answer.get("action") == "handled":
                return InputVerdict(text, handled=True)
            if answer.get("action") == "transform":
                text = answer.get("text", text)
        return InputVerdict(text)

    async def emit_context(self, messages: Sequence[AgentMessage]) -> list[AgentMessage]:
        """Return the messages for the model: one deep copy, which the handlers edit or replace."""
        current = clone(list(messages))
        for each in self.handlers("context"):
            event = ExtensionEvent("context", messages=current)
            current = (await self.ask(each, event) or {}).get("messages", event.messages)
        return current

    async def emit_before_agent_start(self, prompt: str, system_prompt: str) -> BeforeAgentStart:
        """Return what a run begins with: each handler sees the system prompt of those before it."""
        messages: list[UserMessage] = []
        for each in self.handlers("before_agent_start"):
            event = ExtensionEvent("before_agent_start", prompt=prompt, system_prompt=system_prompt)
            answer = await self.ask(each, event) or {}
            messages += [answer["message"]] if "message" in answer else []
            system_prompt = answer.get("system_prompt", system_prompt)
        return BeforeAgentStart(messages, system_prompt)

    async def emit_session_before(self, event: ExtensionEvent) -> bool:
        """Tell whether a handler cancels what a `session_before_*` event announces; the first one ends it."""
        for each in self.handlers(event.type):
            if (await self.ask(each, event) or {}).get("cancel"):
                return True
        return False

    def handlers(self, event_type: str) -> list[Subscription]:
        """Return the handlers of an event, with their extensions, in the order in which they are asked."""
        return [(each, handler) for each in self.extensions for handler in each.handlers.get(event_type, ())]

    async def ask(self, handler: Subscription, event: ExtensionEvent, *, fail_closed: bool = False) -> Any:
        """Return a handler's answer; where there is only a fault, report it and return `None` or a block.

        An exit and a CancelledError of the handler's own are faults, too.
        """
        event.context = self.create_context()
        caller = asyncio.current_task()
        cancels = caller.cancelling() if caller else 0
        try:
            answer = handler[1](event)
            return _checked(event, await answer if inspect.isawaitable(answer) else answer)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and caller and caller.cancelling() > cancels:
                raise
            fault = traceback.format_exception_only(error)
        self.report(ExtensionFault(handler[0].path, event.type, reason := "".join(fault).strip()))
        return {"block": True, "reason": reason} if fail_closed else None

    def report(self, fault: ExtensionFault) -> None:
        """Tell the error listeners of an extension's fault."""
        for listener in self._listeners:
            try:
                listener(fault)
            except Exception:  # noqa: BLE001 - the listener's fault is not the extension's
                _log.exception("an error listener failed at %s", fault)


def _first_wins(maps: Iterable[Mapping[str, T]]) -> dict[str, T]:
    winners: dict[str, T] = {}
    for named in maps:
        for name, item in named.items():
            winners.setdefault(name, item)
    return winners


def _checked(event: ExtensionEvent, answer: Any) -> Any:
    """Return an answer if its event knows it. Raises TypeError for arguments that are no JSON, ValueError."""
    if event.type == "tool_call":
        clone(event.call.arguments)
    knows = _ANSWERS.get("session_before_*" if event.type.startswith("session_before_") else event.type)
    if answer is not None and knows is not None and not knows(answer):
        raise ValueError(f"{event.type} knows no such answer as {answer!r}")
    return answer


def _is(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _are(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _record(**known: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda answer: (
        isinstance(answer, Mapping)
        and all(key in known and known[key](value) for key, value in answer.items())
    )


_ANSWERS: dict[str, Callable[[Any], bool]] = {
    "tool_call": _record(block=_is(bool), reason=_is(str)),
    "tool_result": _record(
        content=_are(TextContent), details=lambda value: json.dumps(clone(value)) != "", is_error=_is(bool)
    ),
    "input": _record(action=("continue", "handled", "transform").__contains__, text=_is(str)),
    "context": _record(messages=_are(AgentMessage)),
    "before_agent_start": _record(message=_is(UserMessage), system_prompt=_is(str)),
    "session_before_*": _record(cancel=_is(bool)),
    "project_trust": ("yes", "no", "undecided").__contains__,
    "resources_discover": _are(str),
}
