"""Chapter 23, beyond the labs: handlers, sessions and reloads under odd and ill-meant conditions."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pi_course.agent import Agent
from pi_course.extensions import loader, packages, runner, session
from pi_course.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    text_of,
    user_message,
)
from pi_course.model import ScriptedModel
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.signals import AbortController

pytestmark = pytest.mark.extra23


def write(path: Path, text: str = "") -> str:
    """Write a file, folders and all, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What extension files note: `from notes23 import note`."""
    noted: list[Any] = []
    module = ModuleType("notes23")
    vars(module)["note"] = noted.append
    monkeypatch.setitem(sys.modules, "notes23", module)
    return noted


def write_noting(path: Path, *body: str) -> str:
    """Write an extension that notes its import and its setup; returns its path."""
    head = f"from notes23 import note\nnote('import {path.stem}')\ndef setup(api):"
    return write(path, "\n    ".join([head, f"note('setup {path.stem}')", *body]))


def tool(name: str, execute: Any = None) -> ToolDefinition:
    """A tool that takes an optional text."""

    async def nothing(arguments: dict[str, Any], context: ToolContext) -> str:
        return "done"

    parameters: Any = {"type": "object", "properties": {"text": {"type": "string"}}}
    return ToolDefinition(name, f"the tool {name}", parameters, execute or nothing)


def on(**handlers: Any) -> Callable[[Any], None]:
    """A setup that registers a handler, or several, for each event."""

    def setup(api: Any) -> None:
        for event, given in handlers.items():
            for handler in given if isinstance(given, list) else [given]:
                api.on(event, handler)

    return setup


def failing(event: Any) -> Any:
    """A handler that is broken."""
    raise RuntimeError("handler is broken")


async def load(*setups: Any) -> Any:
    """Load inline extensions, all of them good."""
    result = await loader.load_extensions([], cwd=os.curdir, inline=setups)
    assert result.errors == []
    return result


async def run_by(*setups: Any) -> tuple[Any, list[Any]]:
    """A runner of inline extensions, and what its error listener hears."""
    result = await load(*setups)
    running = runner.ExtensionRunner(result.extensions, result.runtime, cwd=os.curdir)
    faults: list[Any] = []
    running.on_error(faults.append)
    return running, faults


def holding(result: Any) -> Any:
    """What a session needs of a resource loader, holding one load."""
    return SimpleNamespace(cwd=os.curdir, claim=lambda: asyncio.sleep(0, result))


async def serve(*setups: Any, parts: Any = None, **options: Any) -> Any:
    """A session of inline extensions, bound."""
    serving = session.AgentSession(parts or session.AgentParts(), holding(await load(*setups)), **options)
    await asyncio.wait_for(serving.bind(), 10)
    return serving


def resources(root: Path, **options: Any) -> Any:
    """A resource loader with its places below a root, without distributions of the machine."""
    places = {"cwd": root / "project", "agent_dir": root / "agent", "home": root}
    return session.ResourceLoader(**places | options)


# --- the runner ---
BAD_ANSWERS: list[tuple[str, Any]] = [
    ("tool_call", True),
    ("tool_call", "block"),
    ("tool_call", {"blocked": True}),
    ("tool_call", {"block": "yes"}),
    ("tool_call", {"block": False, "reason": 3}),
    ("tool_call", [("block", False)]),
]


@pytest.mark.parametrize("answer", [answer for _, answer in BAD_ANSWERS], ids=repr)
async def test_a_tool_call_answer_with_a_typing_error_blocks(answer: Any) -> None:
    """A policy that answers in no known form is a fault, and a fault blocks."""
    running, faults = await run_by(on(tool_call=lambda event: answer))
    verdict = await running.emit_tool_call(ToolCall("call-1", "shell", {}))
    assert verdict.blocked
    assert verdict.path == "<inline:1>"
    assert [(fault.path, fault.event) for fault in faults] == [("<inline:1>", "tool_call")]
    assert verdict.reason == faults[0].error


async def test_exits_and_cancellations_of_a_handler_s_own_are_faults() -> None:
    """`SystemExit` and a stray CancelledError block a call, and stop no other event."""

    async def cancelled(event: Any) -> Any:
        raise asyncio.CancelledError

    heard: list[str] = []
    for fault in (lambda event: sys.exit("bye"), cancelled):
        heard.clear()
        running, faults = await run_by(
            on(tool_call=fault, session_start=[fault, lambda event: heard.append(event.type)])
        )
        assert (await running.emit_tool_call(ToolCall("call-1", "shell", {}))).blocked
        await running.emit(runner.ExtensionEvent("session_start"))
        assert heard == ["session_start"]
        assert len(faults) == 2


async def test_cancelling_the_caller_passes_through_a_handler() -> None:
    """Who waits for an event may be cancelled, and that is nobody's fault."""
    begun = asyncio.Event()

    async def hanging(event: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    running, faults = await run_by(on(session_start=hanging))
    task = asyncio.create_task(running.emit(runner.ExtensionEvent("session_start")))
    await asyncio.wait_for(begun.wait(), 10)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=10)
    assert [each.cancelled() for each in done] == [True]
    assert faults == []


async def test_an_edit_after_the_answer_is_not_seen() -> None:
    """What a handler does to a call once it has answered reaches neither later handlers nor the tool."""
    kept: list[Any] = []

    def keep(event: Any) -> None:
        event.call.arguments["text"] += " -l"
        kept.append(event.call)

    def check(event: Any) -> Any:
        kept[0].arguments["text"] = "rm"
        kept[0].name = "other"
        return {"block": event.call.arguments["text"] != "ls -l"}

    running, _ = await run_by(on(tool_call=[keep, check]))
    verdict = await running.emit_tool_call(ToolCall("call-1", "shell", {"text": "ls"}))
    kept[0].arguments["text"] = "rm"
    assert not verdict.blocked
    assert verdict.call == ToolCall("call-1", "shell", {"text": "ls -l"})


async def test_a_call_keeps_its_id_and_name_and_may_get_new_arguments() -> None:
    """A handler may put other arguments in the place of the old ones, but makes no other call of it."""

    def rewrite(event: Any) -> None:
        event.call.id, event.call.name, event.call.arguments = "2", "other", {"text": "new"}

    running, _ = await run_by(on(tool_call=[rewrite, lambda event: {"block": event.call.name != "shell"}]))
    verdict = await running.emit_tool_call(ToolCall("call-1", "shell", {"text": "old"}))
    assert verdict == runner.ToolCallVerdict(ToolCall("call-1", "shell", {"text": "new"}))


async def test_arguments_that_are_no_json_any_more_block() -> None:
    """A call that could not be written down is not run."""
    running, faults = await run_by(on(tool_call=lambda event: event.call.arguments.update(text=object())))
    assert (await running.emit_tool_call(ToolCall("call-1", "shell", {}))).blocked
    assert len(faults) == 1


@pytest.mark.parametrize(
    "answer",
    [
        True,
        {"content": "text"},
        {"content": ["text"]},
        {"content": [ToolCall("1", "x", {})]},
        {"details": object()},
        {"is_error": "no"},
        {"is_error": False, "tool_name": "other"},
    ],
    ids=["no dict", "text", "strings", "a call", "no json", "no bool", "unknown key"],
)
async def test_a_patch_that_fits_no_result_is_reported_and_changes_nothing(answer: Any) -> None:
    """A malformed patch is passed over as a whole."""
    result = ToolResultMessage("call-1", "shell", [TextContent("files")], True, 7, {"code": 1})
    running, faults = await run_by(on(tool_result=[lambda event: answer, lambda event: {"details": 2}]))
    assert await running.emit_tool_result(result) == ToolResultMessage(
        "call-1", "shell", [TextContent("files")], True, 7, 2
    )
    assert [fault.event for fault in faults] == ["tool_result"]


async def test_editing_the_event_s_result_is_no_patch() -> None:
    """A result is changed by what a handler answers, not by what it does to its copy."""
    result = ToolResultMessage("call-1", "shell", [TextContent("files")], False, 7)

    def edit(event: Any) -> None:
        event.result.content[0].text = "edited"
        event.result.is_error = True

    running, _ = await run_by(on(tool_result=edit))
    patched = await running.emit_tool_result(result)
    assert patched == result
    assert patched is not result


async def test_other_malformed_answers_are_reported_and_passed_over() -> None:
    """Whatever the event, an answer it doesn't know changes nothing and is told to the error listeners."""
    running, faults = await run_by(
        on(
            input=[lambda event: {"action": "swallow"}, lambda event: "handled", lambda event: {"text": 1}],
            context=[lambda event: {"messages": ["hello"]}, lambda event: {"messages": ()}],
            before_agent_start=[lambda event: {"message": "hi"}, lambda event: {"systemPrompt": "x"}],
            session_before_switch=[lambda event: {"cancel": "no"}, lambda event: True],
            resources_discover=[lambda event: "/tmp", lambda event: [1], lambda event: ["/a"]],
        )
    )
    assert await running.emit_input("hello") == runner.InputVerdict("hello")
    messages = [user_message("hello")]
    assert await running.emit_context(messages) == messages
    assert await running.emit_before_agent_start("go", "base") == runner.BeforeAgentStart([], "base")
    assert await running.emit_session_before(runner.ExtensionEvent("session_before_switch")) is False
    assert await running.emit(runner.ExtensionEvent("resources_discover")) == [["/a"]]
    counts = [fault.event for fault in faults]
    assert counts == [
        *["input"] * 3,
        *["context"] * 2,
        *["before_agent_start"] * 2,
        *["session_before_switch"] * 2,
        *["resources_discover"] * 2,
    ]


async def test_the_first_cancel_ends_the_asking() -> None:
    """Once something is cancelled, nobody else is asked."""
    asked: list[str] = []
    running, _ = await run_by(
        on(session_before_fork=[lambda event: {"cancel": True}, lambda event: asked.append("late")])
    )
    assert await running.emit_session_before(runner.ExtensionEvent("session_before_fork")) is True
    assert asked == []


async def test_context_edits_in_place_are_kept_without_an_answer() -> None:
    """All handlers work on the same copy: an edit counts, answered or not, and whoever fails later."""

    def add(event: Any) -> None:
        event.messages.append(user_message("two", timestamp=2))

    def replace(event: Any) -> None:
        event.messages = [*event.messages, user_message("three", timestamp=3)]

    messages = [user_message("one", timestamp=1)]
    running, _ = await run_by(on(context=[add, failing, replace]))
    assert [text_of(each) for each in await running.emit_context(messages)] == ["one", "two", "three"]
    assert [text_of(each) for each in messages] == ["one"]


async def test_a_listener_that_fails_silences_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """An error listener's own error is logged; the next listener hears the fault all the same."""
    result = await load(on(session_start=failing))
    running = runner.ExtensionRunner(result.extensions, result.runtime, cwd=os.curdir)
    heard: list[Any] = []
    for listener in (failing, heard.append):
        running.on_error(listener)
    await running.emit(runner.ExtensionEvent("session_start"))
    assert [(fault.path, fault.event, fault.error) for fault in heard] == [
        ("<inline:1>", "session_start", "RuntimeError: handler is broken")
    ]
    assert "error listener" in caplog.text


async def test_a_shortcut_taken_twice_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """The warning names the key and the extension that got it."""
    one = lambda api: api.register_shortcut("ctrl+r", print)  # noqa: E731 - two setups alike
    running, _ = await run_by(one, one)
    assert caplog.text == ""
    assert list(running.shortcuts()) == ["ctrl+r"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "ctrl+r" in caplog.text
    assert "<inline:2>" in caplog.text


async def test_handlers_added_while_an_event_is_under_way_wait_for_the_next() -> None:
    """An event is told to those who listened when it began."""
    heard: list[str] = []

    def setup(api: Any) -> None:
        def first(event: Any) -> None:
            heard.append("first")
            api.on("turn_end", lambda event: heard.append("added"))

        api.on("turn_end", first)

    running, _ = await run_by(setup)
    await running.emit(runner.ExtensionEvent("turn_end"))
    assert heard == ["first"]
    await running.emit(runner.ExtensionEvent("turn_end"))
    assert heard == ["first", "first", "added"]


# --- the session ---
async def test_an_agent_works_with_a_session_s_tools_and_executor() -> None:
    """A session's registry and executor are chapter 09's: a blocked call is answered, a late tool seen."""
    ran: list[str] = []
    apis: list[Any] = []

    async def shell(arguments: dict[str, Any], context: ToolContext) -> str:
        ran.append(arguments["text"])
        return "files"

    def setup(api: Any) -> None:
        apis.append(api)
        api.on("tool_call", lambda event: {"block": "rm" in event.call.arguments["text"], "reason": "no rm"})
        api.on("tool_result", lambda event: api.register_tool(tool("late")))

    def reply(*content: Any) -> AssistantMessage:
        return AssistantMessage([*content], "toolUse" if isinstance(content[0], ToolCall) else "stop", 1)

    serving = await serve(setup, builtin_tools=[tool("shell", shell)])
    calls = [ToolCall(f"call-{text}", "shell", {"text": text}) for text in ("rm -rf /", "ls")]
    model = ScriptedModel([reply(*calls), reply(TextContent("done"))])
    agent = Agent(model=model, tools=serving.tool_registry, tool_executor=serving.execute)
    result = await asyncio.wait_for(agent.prompt("clean up"), 10)
    assert result.reason == "stop"
    assert ran == ["ls"]
    answers = [
        (each.tool_call_id, each.is_error) for each in result.messages if isinstance(each, ToolResultMessage)
    ]
    assert answers == [("call-rm -rf /", True), ("call-ls", False)]
    assert [[schema.name for schema in request.tools] for request in model.requests] == [
        ["shell"],
        ["shell", "late"],
    ]


async def test_without_a_live_session_nothing_runs() -> None:
    """Before bind and after dispose a call gets an error result, and no policy is missed."""
    ran: list[Any] = []

    async def note(arguments: dict[str, Any], context: ToolContext) -> str:
        ran.append(arguments)
        return "done"

    call = ToolCall("call-1", "note", {})
    serving = session.AgentSession(
        session.AgentParts(), holding(await load()), builtin_tools=[tool("note", note)]
    )
    assert (await serving.execute(call)).is_error
    with pytest.raises(ExtensionError):
        serving.runner  # noqa: B018 - looking is what raises
    await serving.bind()
    assert not (await serving.execute(call)).is_error
    with pytest.raises(ExtensionError):
        await serving.bind()
    await serving.dispose()
    await serving.dispose()
    result = await serving.execute(call)
    assert (result.tool_call_id, result.tool_name, result.is_error) == ("call-1", "note", True)
    assert ran == [{}]
    for step in (serving.bind, serving.reload):
        with pytest.raises(ExtensionError):
            await step()


async def test_a_session_that_was_never_bound_can_be_disposed_and_emits_nothing() -> None:
    """There is nobody to tell."""
    heard: list[Any] = []
    result = await load(on(session_shutdown=heard.append))
    serving = session.AgentSession(session.AgentParts(), holding(result))
    await serving.dispose()
    with pytest.raises(ExtensionError):
        await serving.bind()
    assert heard == []


async def test_shutdown_is_awaited_told_once_and_may_still_act() -> None:
    """`dispose` tells the reason `quit`; a failing handler is reported, and the runtime ends all the same."""
    heard: list[Any] = []
    apis: list[Any] = []
    faults: list[Any] = []

    def setup(api: Any) -> None:
        async def last(event: Any) -> None:
            await asyncio.sleep(0)
            api.send_message("goodbye")
            heard.append(event.reason)

        apis.append(api)
        on(session_shutdown=[failing, last])(api)

    parts = session.AgentParts(send_message=heard.append)
    serving = session.AgentSession(parts, holding(await load(setup)))
    serving.on_error(faults.append)
    await serving.bind()
    await serving.dispose()
    await serving.dispose()
    assert heard == ["goodbye", "quit"]
    assert [fault.event for fault in faults] == ["session_shutdown"]
    with pytest.raises(ExtensionError, match="quit"):
        apis[0].send_message("too late")


async def test_an_aborted_call_asks_no_handler() -> None:
    """What is not going to run is neither judged nor patched."""
    heard: list[Any] = []
    serving = await serve(on(tool_call=heard.append, tool_result=heard.append), builtin_tools=[tool("note")])
    controller = AbortController()
    controller.abort("enough")
    result = await serving.execute(ToolCall("call-1", "note", {}), ToolContext(controller.signal))
    assert result.is_error
    assert heard == []


async def test_a_blocked_result_tells_who_and_why() -> None:
    """The details hold the extension's path and its reason, for programs."""
    serving = await serve(
        on(tool_call=lambda event: {"block": True, "reason": "no writes"}), builtin_tools=[tool("note")]
    )
    result = await serving.execute(ToolCall("call-1", "note", {}))
    assert result.details == {"extension": "<inline:1>", "reason": "no writes"}
    assert text_of(result) == "Blocked by extension <inline:1>: no writes"


async def test_a_tool_switched_off_by_its_own_handler_does_not_run() -> None:
    """The registry is looked at again after the handlers."""
    heard: list[Any] = []

    def setup(api: Any) -> None:
        api.on("tool_call", lambda event: api.set_active_tools([]))
        api.on("tool_result", heard.append)

    serving = await serve(setup, builtin_tools=[tool("note")])
    assert (await serving.execute(ToolCall("call-1", "note", {}))).is_error
    assert heard == []


async def test_what_the_host_does_not_offer_is_refused() -> None:
    """An action without a function behind it is an error of the caller's, not a silent nothing."""
    apis: list[Any] = []
    await serve(apis.append)
    for action in (apis[0].abort, lambda: apis[0].send_message("x"), lambda: apis[0].set_model("y")):
        with pytest.raises(ExtensionError):
            action()


async def test_actions_reach_the_parts_and_the_host_the_handlers() -> None:
    """Each action calls the function of its name; `context.host` is what bind was given."""
    did: list[Any] = []
    apis: list[Any] = []
    hosts: list[Any] = []

    async def note(*what: Any) -> None:
        did.append(what)

    def setup(api: Any) -> None:
        apis.append(api)
        api.register_provider("queued", {"url": "x"})
        api.on("session_start", lambda event: hosts.append(event.context.host))
        api.on("resources_discover", lambda event: ["/one", "/two"])

    parts = session.AgentParts(
        append_entry=note,
        compact=note,
        abort=lambda reason: did.append(reason),
        set_model=did.append,
        register_provider=lambda *what: did.append(what),
        unregister_provider=did.append,
    )
    serving = session.AgentSession(
        parts, holding(await load(setup, on(resources_discover=lambda event: ["/three"])))
    )
    host = object()
    await serving.bind(host)
    assert hosts == [host]
    assert serving.resource_roots == ["/one", "/two", "/three"]
    [api] = apis
    await api.append_entry("kind", {"a": 1})
    await api.compact("short")
    api.abort("stop")
    api.set_model("m")
    api.unregister_provider("queued")
    assert did == [("queued", {"url": "x"}), ("kind", {"a": 1}), ("short",), "stop", "m", "queued"]


# --- loading and reloading ---
async def test_two_sessions_over_one_loader_share_factories_and_nothing_else(
    tmp_path: Path, notes: list[Any]
) -> None:
    """Each session has its own runtime and containers; a reload or the end of one leaves the other alone."""
    path = write_noting(tmp_path / "one.py", "note(api)")
    shelf = resources(tmp_path, cli=[path])
    first, second = (session.AgentSession(session.AgentParts(), shelf) for _ in range(2))
    await shelf.reload()
    await asyncio.gather(first.bind(), second.bind())
    assert notes.count("import one") == 1
    one, two = (note for note in notes if not isinstance(note, str))
    one.register_tool(tool("mine"))
    assert (first.tool_registry.names(), second.tool_registry.names()) == (["mine"], [])
    await first.reload()
    assert two.get_active_tools() == []
    two.register_tool(tool("yours"))
    assert (first.tool_registry.names(), second.tool_registry.names()) == ([], ["yours"])
    with pytest.raises(ExtensionError):
        one.get_active_tools()
    await first.dispose()
    assert two.get_active_tools() == ["yours"]
    await asyncio.gather(second.reload(), second.reload())
    assert notes.count("import one") == 4
    assert second.runner.tools() == {}


async def test_two_resource_loaders_may_share_a_factory_cache(tmp_path: Path, notes: list[Any]) -> None:
    """A second loader of the same project finds the factories; each still has extensions of its own."""
    path, cache = write_noting(tmp_path / "one.py"), loader.ExtensionLoader()
    shelves = [resources(tmp_path, cli=[path], loader=cache) for _ in range(2)]
    results = [await shelf.claim() for shelf in shelves]
    assert notes == ["import one", "setup one", "setup one"]
    assert results[0].runtime is not results[1].runtime


async def test_settings_are_read_at_every_load(tmp_path: Path, notes: list[Any]) -> None:
    """A host that edits its settings, before a reload or in `reload_settings`, sees them heeded."""
    one, two = (write_noting(tmp_path / f"set/{name}.py") for name in ("one", "two"))
    user = packages.ExtensionSettings([one], [])

    async def read_settings() -> None:
        await asyncio.sleep(0)
        user.extensions[:] = [two]

    shelf = resources(tmp_path, user=user)
    serving = session.AgentSession(session.AgentParts(reload_settings=read_settings), shelf)
    await serving.bind()
    await serving.reload()
    assert notes == ["import one", "setup one", "import two", "setup two"]


async def test_no_extensions_leaves_what_the_caller_names(tmp_path: Path, notes: list[Any]) -> None:
    """CLI paths and inline factories still come in; a missing CLI path is an error, told once."""
    write_noting(tmp_path / "agent/extensions/mine.py")
    write_noting(tmp_path / "project/.pi/extensions/team.py")
    named = write_noting(tmp_path / "named.py")
    shelf = resources(
        tmp_path, cli=[named, "gone.py"], no_extensions=True, inline=[lambda api: notes.append("inline")]
    )
    result = await shelf.reload(lambda running: True)
    assert notes == ["import named", "setup named", "inline"]
    assert [error.error.partition(":")[0] for error in result.errors] == ["Extension path does not exist"]


async def test_conflicts_are_told_of_tools_and_flags_and_change_nothing(tmp_path: Path) -> None:
    """The later extension gets the error, names the first, and stays; commands and keys don't conflict."""

    def setup(api: Any) -> None:
        api.register_tool(tool("read"))
        api.register_flag("plan", type="boolean")
        api.register_command("review", print)
        api.register_shortcut("ctrl+r", print)

    named = [loader.InlineExtension(setup, name) for name in ("a", "b", "c")]
    result = await resources(tmp_path, inline=named).reload()
    assert [(error.path, error.error) for error in result.errors] == [
        (f"<inline:{name}>", f"{what} conflicts with <inline:a>")
        for name in ("b", "c")
        for what in ('Tool "read"', 'Flag "--plan"')
    ]
    assert len(result.extensions) == 3


async def test_a_reload_that_fails_keeps_the_guard_and_can_be_tried_again(tmp_path: Path) -> None:
    """Whatever step raises, blocked stays blocked; shutdown is told once, flags survive the second try."""
    heard: list[Any] = []
    apis: list[Any] = []
    broken = [OSError("settings can't be read")]

    def setup(api: Any) -> None:
        apis.append(api)
        api.register_flag("limit", type="string", default="none")
        api.on("tool_call", lambda event: {"block": event.call.arguments.get("text") == "rm"})
        api.on("session_shutdown", lambda event: heard.append("shutdown"))
        api.on("session_start", lambda event: heard.append("start"))

    def read_settings() -> None:
        if broken:
            raise broken.pop()

    parts = session.AgentParts(reload_settings=read_settings)
    shelf = resources(tmp_path, inline=[setup])
    serving = session.AgentSession(parts, shelf, builtin_tools=[tool("shell")])
    await serving.bind(object())
    serving.runner.runtime.flag_values["limit"] = "9"
    with pytest.raises(OSError, match="settings"):
        await serving.reload()
    assert (await serving.execute(ToolCall("call-1", "shell", {"text": "rm"}))).is_error
    assert not (await serving.execute(ToolCall("call-2", "shell", {"text": "ls"}))).is_error
    with pytest.raises(ExtensionError):
        apis[0].get_active_tools()
    await serving.reload()
    assert heard == ["start", "shutdown", "start"]
    assert apis[1].get_flag("limit") == "9"
    assert (await serving.execute(ToolCall("call-3", "shell", {"text": "rm"}))).is_error


async def test_calls_during_a_reload_are_still_guarded(tmp_path: Path) -> None:
    """Between the old runner and the new a call meets the old handlers; one that needs its context blocks."""
    gate = asyncio.Event()
    reached = asyncio.Event()

    async def read_settings() -> None:
        reached.set()
        await gate.wait()

    def setup(api: Any) -> None:
        api.on("tool_call", lambda event: {"block": event.context.cwd == "nowhere"})

    serving = session.AgentSession(
        session.AgentParts(reload_settings=read_settings),
        resources(tmp_path, inline=[setup]),
        builtin_tools=[tool("shell")],
    )
    await serving.bind()
    assert not (await serving.execute(ToolCall("call-1", "shell", {}))).is_error
    reloading = asyncio.create_task(serving.reload())
    await asyncio.wait_for(reached.wait(), 10)
    result = await serving.execute(ToolCall("call-2", "shell", {}))
    assert result.is_error
    assert "has ended" in text_of(result)
    gate.set()
    await asyncio.wait_for(reloading, 10)
    assert not (await serving.execute(ToolCall("call-3", "shell", {}))).is_error


async def test_a_tool_that_comes_back_stays_switched_off(tmp_path: Path, notes: list[Any]) -> None:
    """A reload in which an extension is broken doesn't switch its tools on again; new ones are on."""
    register = (
        "from pi_course.schema import ToolDefinition as T\n    api.register_tool(T({!r}, '', {{}}, print))"
    )
    path = Path(write_noting(tmp_path / "one.py", register.format("loud")))
    apis: list[Any] = []
    shelf = resources(tmp_path, cli=[str(path)], inline=[apis.append])
    serving = session.AgentSession(session.AgentParts(), shelf, builtin_tools=[tool("read")])
    await serving.bind()
    apis[-1].set_active_tools(["read", "unknown"])
    write(path, "this is no Python")
    await serving.reload()
    assert apis[-1].get_active_tools() == ["read"]
    write_noting(path, register.format("loud"), register.format("fresh"))
    await serving.reload()
    assert apis[-1].get_active_tools() == ["read", "fresh"]
    apis[-1].set_active_tools(["loud"])
    await serving.reload()
    assert apis[-1].get_active_tools() == ["loud"]


async def test_an_abandoned_load_is_dead(tmp_path: Path) -> None:
    """Cancelled while a factory is under way, a reload leaves no live runtime, and can be repeated."""
    apis: list[Any] = []
    begun = asyncio.Event()
    gate = asyncio.Event()

    async def slow(api: Any) -> None:
        begun.set()
        await gate.wait()

    shelf = resources(tmp_path, inline=[apis.append, slow])
    task = asyncio.create_task(shelf.reload())
    await asyncio.wait_for(begun.wait(), 10)
    task.cancel()
    await asyncio.wait({task}, timeout=10)
    assert task.cancelled()
    with pytest.raises(ExtensionError):
        apis[0].on("session_start", print)
    gate.set()
    assert len((await asyncio.wait_for(shelf.reload(), 10)).extensions) == 2


async def test_watchers_end_with_their_session_in_every_reload(tmp_path: Path) -> None:
    """Ten reloads, one watcher and one listener: shutdown is where an extension ends what it started."""
    running: set[int] = set()
    heard: list[int] = []
    apis: list[Any] = []

    def setup(api: Any) -> None:
        number = len(apis)
        apis.append(api)
        api.on("session_start", lambda event: running.add(number))
        api.on("session_shutdown", lambda event: running.discard(number))
        api.events.on("tick", lambda data: heard.append(number))

    serving = session.AgentSession(session.AgentParts(), resources(tmp_path, inline=[setup]))
    await serving.bind(object())
    for _ in range(10):
        await serving.reload()
    assert running == {10}
    apis[-1].events.emit("tick")
    assert heard == [10]
    await serving.dispose()
    assert running == set()
