"""The runner: in which order extensions are asked, and what becomes of several answers and equal names."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeAlias, get_args

from pi_course.extensions.api import ExtensionRuntime
from pi_course.extensions.sources import (
    CALLBACK_FAULTS,
    EXTENSION_FAULTS,
    Extension,
    ExtensionFault,
    ExtensionFlag,
    ExtensionShortcut,
    RegisteredCommand,
    RegisteredTool,
    described,
    settle,
)
from pi_course.messages import (
    AgentMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    message_from_json,
    message_to_json,
)
from pi_course.values import clone

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


class RunnerContext:
    """A live view for handlers: every look shows the present, and raises once the runtime is stale."""

    def __init__(self, runner: "ExtensionRunner") -> None:
        self._runner = runner

    @property
    def cwd(self) -> str:
        """The project's directory."""
        self._runner.runtime.assert_active()
        return self._runner.cwd

    @property
    def host(self) -> object | None:
        """What the host gave to `AgentSession.bind`."""
        self._runner.runtime.assert_active()
        return self._runner.host

    @property
    def active_tools(self) -> list[str]:
        """The names of the tools in use."""
        return list(self._runner.runtime.actions.get_active_tools())


class ExtensionRunner:
    """The loaded extensions in their order: whom to ask, and what wins. (Chapter 23, Lab 23.4)

    Handlers, plain or async, are asked one after another, by extension and then by registration; each gets an
    event with a live `context`. `tool_call` fails closed; at any other event a fault goes to the error
    listeners, and the next handler is asked. Hardened: an answer that its event doesn't know is a fault too,
    or a policy with a typing error would pass for an allowance.
    """

    def __init__(self, extensions: Sequence[Extension], runtime: ExtensionRuntime, *, cwd: str) -> None:
        self.extensions = list(extensions)
        self.runtime = runtime
        self.cwd = cwd
        self.host: object | None = None
        self._listeners: list[ErrorListener] = []

    def tools(self) -> dict[str, RegisteredTool]:
        """Return the tools by name; of equal names the first extension's."""
        return _first_by_name(extension.tools for extension in self.extensions)

    def flags(self) -> dict[str, ExtensionFlag]:
        """Return the flags by name; of equal names the first extension's."""
        return _first_by_name(extension.flags for extension in self.extensions)

    def commands(self) -> dict[str, RegisteredCommand]:
        """Return every command by what invokes it: a name used once, else `name:k` in load order.

        k is raised while that is taken: `review`, `review`, `review:1` give review:1, review:2, review:1:2.
        """
        registered = [command for extension in self.extensions for command in extension.commands.values()]
        uses = Counter(command.name for command in registered)
        seen: Counter[str] = Counter()
        invoked: dict[str, RegisteredCommand] = {}
        for command in registered:
            seen[command.name] += 1
            bare = uses[command.name] == 1
            name = command.name if bare else f"{command.name}:{seen[command.name]}"
            for number in count(2 if bare else seen[command.name] + 1):
                if name not in invoked:
                    break
                name = f"{command.name}:{number}"
            invoked[name] = command
        return invoked

    def shortcuts(self) -> dict[str, ExtensionShortcut]:
        """Return the shortcuts by key; of equal keys the last extension's, with a warning in the log."""
        owners: dict[str, list[Extension]] = {}
        for extension in self.extensions:
            for key in extension.shortcuts:
                owners.setdefault(key, []).append(extension)
        for key, several in owners.items():
            if len(several) > 1:
                _log.warning("the shortcut %s is registered several times: %s gets it", key, several[-1].path)
        return {key: several[-1].shortcuts[key] for key, several in owners.items()}

    def on_error(self, listener: ErrorListener) -> None:
        """Call the listener with every fault; what it raises is logged, no more."""
        self._listeners.append(listener)

    def create_context(self) -> RunnerContext:
        """Return a live view for a handler."""
        return RunnerContext(self)

    async def emit(self, event: ExtensionEvent) -> list[Any]:
        """Tell every handler of the event's type; returns the answers that are not `None`."""
        closed = event.type == "tool_call"
        answers = []
        for pair in self.handlers(event.type):
            answers.append(await self.ask(pair, event, fail_closed=closed))
            if closed and _blocks(answers[-1]):
                break
        return [answer for answer in answers if answer is not None]

    async def emit_tool_call(self, call: ToolCall) -> ToolCallVerdict:
        """Ask whether a tool may run; the first block, or fault, ends it. Arguments edited go on to the tool.

        Hardened: an edit after the handler's answer is not seen, or a call could change once it was allowed.
        """
        current = clone(call)
        for pair in self.handlers("tool_call"):
            event = ExtensionEvent("tool_call", call=clone(current))
            answer = await self.ask(pair, event, fail_closed=True)
            if _blocks(answer):
                return ToolCallVerdict(current, True, str(answer.get("reason", "")), pair[0].path)
            current.arguments = _json_arguments(event.call)
        return ToolCallVerdict(current)

    async def emit_tool_result(self, result: ToolResultMessage) -> ToolResultMessage:
        """Return the result with every handler's patch, each seeing those before it.

        The keys that are there decide: `False` and `None` are patches, too.
        """
        current = clone(result)
        for pair in self.handlers("tool_result"):
            event = ExtensionEvent("tool_result", result=clone(current))
            for key, value in (await self.ask(pair, event) or {}).items():
                setattr(current, key, clone(value))
        return current

    async def emit_input(self, text: str) -> InputVerdict:
        """Return the user's text as the handlers transform it, or that one of them has handled it."""
        for pair in self.handlers("input"):
            answer = await self.ask(pair, ExtensionEvent("input", text=text)) or {}
            if answer.get("action") == "handled":
                return InputVerdict(text, True)
            text = answer.get("text", text)
        return InputVerdict(text)

    async def emit_context(self, messages: Sequence[AgentMessage]) -> list[AgentMessage]:
        """Return the messages for the model: one deep copy, which the handlers edit or replace."""
        current = clone(list(messages))
        for pair in self.handlers("context"):
            before = clone(current)
            event = ExtensionEvent("context", messages=current)
            answer, fault = await self._consult(pair, event)
            if fault is not None:
                current = before  # what a faulty handler has edited doesn't count
            elif answer is not None:
                current = clone(answer["messages"])
            else:
                current = event.messages
        return current

    async def emit_before_agent_start(self, prompt: str, system_prompt: str) -> BeforeAgentStart:
        """Return what a run begins with: each handler sees the system prompt of those before it."""
        messages: list[UserMessage] = []
        for pair in self.handlers("before_agent_start"):
            event = ExtensionEvent("before_agent_start", prompt=prompt, system_prompt=system_prompt)
            answer = await self.ask(pair, event) or {}
            if "message" in answer:
                messages.append(clone(answer["message"]))
            system_prompt = answer.get("system_prompt", system_prompt)
        return BeforeAgentStart(messages, system_prompt)

    async def emit_session_before(self, event: ExtensionEvent) -> bool:
        """Tell whether a handler cancels what a `session_before_*` event announces; the first one ends it."""
        for pair in self.handlers(event.type):
            answer = await self.ask(pair, event)
            if isinstance(answer, dict) and answer.get("cancel") is True:
                return True
        return False

    def handlers(self, event_type: str) -> list[Subscription]:
        """Return the handlers of an event, with their extensions, in the order in which they are asked."""
        return [
            (extension, handler)
            for extension in self.extensions
            for handler in extension.handlers.get(event_type, ())
        ]

    async def ask(self, handler: Subscription, event: ExtensionEvent, *, fail_closed: bool = False) -> Any:
        """Return a handler's answer; where there is only a fault, report it and return `None` or a block.

        An exit and a CancelledError of the handler's own are faults, too.
        """
        answer, fault = await self._consult(handler, event)
        if fault is None:
            return answer
        return {"block": True, "reason": fault} if fail_closed else None

    async def _consult(self, handler: Subscription, event: ExtensionEvent) -> tuple[Any, str | None]:
        """Call a handler, check its answer, report a fault: the answer, and the fault's text if any."""
        extension, function = handler
        kind = event.type
        caller = asyncio.current_task()
        cancels = caller.cancelling() if caller else 0
        event.context = self.create_context()
        answer: Any = None
        error: BaseException | None = None
        try:
            answer = await settle(function(event))
            _check_answer(kind, answer, event)
        except asyncio.CancelledError as own:
            error = own
        except EXTENSION_FAULTS as fault:
            error = fault
        if caller is not None and caller.cancelling() > cancels:
            # the caller's, also where the handler made something else of it
            raise error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError
        if error is None:
            return answer, None
        text = described(error)
        self.report(ExtensionFault(extension.path, kind, text))
        return None, text

    def report(self, fault: ExtensionFault) -> None:
        """Tell the error listeners of an extension's fault."""
        for listener in list(self._listeners):
            try:
                listener(fault)
            except CALLBACK_FAULTS:
                _log.exception("an error listener failed at %s of %s", fault.event, fault.path)


def _first_by_name(maps: Any) -> dict[str, Any]:
    winners: dict[str, Any] = {}
    for each in maps:
        for name, value in each.items():
            winners.setdefault(name, value)
    return winners


def _blocks(answer: Any) -> bool:
    return answer is not None and answer.get("block", False)


# --- what an answer may be ---
def _json_arguments(call: Any) -> dict[str, Any]:
    """Return a call's arguments in JSON's own types; raises for those that are none."""
    _expect(isinstance(call, ToolCall), "the call was replaced by something else")
    plain = clone(call.arguments)
    _expect(isinstance(plain, dict), "the arguments are no object")
    arguments: dict[str, Any] = json.loads(json.dumps(plain, allow_nan=False))
    return arguments


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise TypeError(otherwise)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_json(value: Any) -> bool:
    json.dumps(clone(value), allow_nan=False)  # raises for what is none
    return True


def _is_content(value: Any) -> bool:
    return type(value) is list and all(type(part) is TextContent and type(part.text) is str for part in value)


def _is_messages(value: Any) -> bool:
    fits = type(value) is list and all(isinstance(each, get_args(AgentMessage)) for each in value)
    return fits and clone(value) is not None  # raises for what can't be handed on


def _is_user_message(value: Any) -> bool:
    return type(value) is UserMessage and message_from_json(message_to_json(value)) is not None


_Keys: TypeAlias = dict[str, Callable[[Any], bool]]
_ANY_OF: dict[str, _Keys] = {
    "tool_call": {"block": _is_bool, "reason": _is_text},
    "tool_result": {"content": _is_content, "details": _is_json, "is_error": _is_bool},
    "before_agent_start": {"message": _is_user_message, "system_prompt": _is_text},
}
_ALL_OF: dict[str, _Keys] = {"context": {"messages": _is_messages}, "session_before_": {"cancel": _is_bool}}
_ACTIONS: dict[Any, _Keys] = {
    name: {"action": _is_text, **more}
    for name, more in {"continue": {}, "handled": {}, "transform": {"text": _is_text}}.items()
}


def _has_keys(answer: Any, allowed: _Keys, *, all_of: bool) -> bool:
    known = isinstance(answer, dict) and (
        answer.keys() == allowed.keys() if all_of else answer.keys() <= allowed.keys()
    )
    return known and all(allowed[key](value) for key, value in answer.items())


def _fits(kind: str, answer: Any) -> bool:
    """Tell whether the table knows an answer to this kind of event."""
    if kind in _ANY_OF:
        return _has_keys(answer, _ANY_OF[kind], all_of=False)
    if kind in _ALL_OF:
        return _has_keys(answer, _ALL_OF[kind], all_of=True)
    if kind == "input":
        action = answer.get("action") if isinstance(answer, dict) else None
        return _is_text(action) and action in _ACTIONS and _has_keys(answer, _ACTIONS[action], all_of=True)
    if kind == "project_trust":
        return answer in ("yes", "no", "undecided")
    if kind == "resources_discover":
        return isinstance(answer, list) and all(map(_is_text, answer))
    return True


def _check_answer(kind: str, answer: Any, event: ExtensionEvent) -> None:
    """Raise TypeError for an answer, or an edit, that an event doesn't know."""
    family = "session_before_" if kind.startswith("session_before_") else kind
    _expect(answer is None or _fits(family, answer), f"{kind} knows no answer {_shown(answer)}")
    if kind == "tool_call" and hasattr(event, "call") and not _blocks(answer):
        _json_arguments(event.call)
    if kind == "context" and hasattr(event, "messages") and answer is None:
        _expect(_is_messages(event.messages), "the messages were replaced by something else")


def _shown(answer: object) -> str:
    try:
        return repr(answer)[:200]
    except Exception:  # noqa: BLE001 - an extension's object
        return f"of type {type(answer).__name__}"
