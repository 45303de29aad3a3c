"""Chapter 23, beyond the labs: records to the last field, doors that are passed on, texts that come out."""

import asyncio
import importlib
import os
import sys
import tempfile
from collections.abc import Callable
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pi_course.extensions import loader, packages, runner, session, sources, trust
from pi_course.messages import TextContent, ToolCall, ToolResultMessage, text_of, user_message
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry, execute_tool_call

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


async def load(*setups: Any, paths: Any = (), **options: Any) -> Any:
    """Load paths and inline extensions, within a bounded time."""
    loading = loader.load_extensions(paths, cwd=os.curdir, inline=setups, **options)
    return await asyncio.wait_for(loading, 20)


async def run_by(*setups: Any) -> tuple[Any, list[Any]]:
    """A runner of inline extensions, and what its error listener hears."""
    result = await load(*setups)
    running = runner.ExtensionRunner(result.extensions, result.runtime, cwd=os.curdir)
    faults: list[Any] = []
    running.on_error(faults.append)
    return running, faults


def on(event: str, *handlers: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A setup that registers handlers of one event."""

    def setup(api: Any) -> None:
        for handler in handlers:
            api.on(event, handler)

    return setup


def holding(result: Any) -> Any:
    """What a session needs of a resource loader, holding one load."""
    return SimpleNamespace(cwd=os.curdir, claim=lambda: asyncio.sleep(0, result))


def refuse(name: str, config: Any) -> None:
    """A core's `register_provider` that knows no provider."""
    raise ValueError("no such provider")


# --- records ---
async def test_what_is_registered_is_kept_to_the_last_field() -> None:
    """Commands, flags, shortcuts and renderers hold what they were given, texts empty where none was."""

    def setup(api: Any) -> None:
        api.register_command("go", print)
        api.register_flag("fast", type="boolean")
        api.register_flag("mode", type="string", default="a", description="how")
        api.register_shortcut("ctrl+g", print)
        api.register_entry_renderer("note", repr)

    [extension] = (await load(setup)).extensions
    info = sources.SourceInfo("<inline:1>", "inline", "temporary", "top-level", None)
    assert (extension.source_info, extension.resolved_path) == (info, "<inline:1>")
    assert extension.commands == {"go": sources.RegisteredCommand("go", print, "", info)}
    flags = [sources.ExtensionFlag("fast", "boolean", None, "")]
    flags.append(sources.ExtensionFlag("mode", "string", "a", "how"))
    assert list(extension.flags.values()) == flags
    assert extension.shortcuts == {"ctrl+g": sources.ExtensionShortcut("ctrl+g", print, "")}
    assert extension.entry_renderers == {"note": repr}


async def test_a_label_s_first_word_is_the_source() -> None:
    """The source of `<label:…>` is what stands before the first colon, of `<label>` all of it."""
    module = SimpleNamespace(setup=lambda api: None)
    named = loader.InlineExtension(lambda api: None, "a:b")
    result = await load(named, paths=["<demo>"], import_module=lambda path: module)
    assert [each.source_info.source for each in result.extensions] == ["demo", "inline"]


@pytest.mark.parametrize("method", ["register_message_renderer", "register_entry_renderer"])
async def test_a_renderer_can_be_called(method: str) -> None:
    """What can't be called is refused as a renderer, and as a listener of the bus."""

    def setup(api: Any) -> None:
        for register in (getattr(api, method), api.events.on):
            with pytest.raises(ExtensionError):
                register("note", 3)

    assert (await load(setup)).errors == []


# --- faults that are told ---
async def test_faults_of_providers_and_listeners_name_path_and_place() -> None:
    """A fault says which extension it was, at what, and with which text; a session passes it on."""
    kept: list[Any] = []

    def setup(api: Any) -> None:
        kept.append(api)
        api.register_provider("bad", {})
        api.events.on("news", lambda data: refuse("", data))

    faults: list[Any] = []
    result = await load(lambda api: None, setup)
    serving = session.AgentSession(session.AgentParts(register_provider=refuse), holding(result))
    serving.on_error(faults.append)
    assert serving.resource_roots == []
    await asyncio.wait_for(serving.bind(), 10)
    kept[0].events.emit("news")
    told = [(fault.path, fault.event, fault.error) for fault in faults]
    assert told == [("<inline:2>", place, "no such provider") for place in ("register_provider", "news")]


async def test_listeners_fall_silent_in_the_midst_of_an_emit() -> None:
    """A listener that ends the runtime ends the emit; nobody behind it is called, and nobody is at fault."""
    heard: list[Any] = []
    apis: list[Any] = []
    faults: list[Any] = []

    def setup(api: Any) -> None:
        apis.append(api)
        api.events.on("news", lambda data: result.runtime.invalidate("over"))
        api.events.on("news", heard.append)

    result = await load(setup)
    result.runtime.bind(SimpleNamespace(), faults.append)
    apis[0].events.emit("news", 1)
    assert (heard, faults) == ([], [])


async def test_exec_gives_no_input_and_reads_any_output() -> None:
    """A program finds its standard input empty, and bytes that are no UTF-8 become a sign."""
    outcomes: list[Any] = []

    async def setup(api: Any) -> None:
        for code in ("import sys; print(len(sys.stdin.read()))", "import os; os.write(1, b'a\\xffb')"):
            outcomes.append((await api.exec(sys.executable, ["-c", code])).stdout.strip())

    reading, writing = os.pipe()
    os.write(writing, b"waiting")
    os.close(writing)
    own = os.dup(0)
    os.dup2(reading, 0)
    try:
        result = await load(setup)
    finally:
        os.dup2(own, 0)
        os.close(own)
        os.close(reading)
    assert (result.errors, outcomes) == ([], ["0", "a\ufffdb"])


async def test_a_load_s_directory_and_a_late_provider_s_path_are_known(tmp_path: Path) -> None:
    """Programs run in the directory of the load; with a core bound, a bad provider is told with its path."""
    where: list[str] = []
    faults: list[Any] = []

    async def setup(api: Any) -> None:
        api.register_provider("bad", {})
        code = "import os; print(os.getcwd())"
        where.append((await api.exec(sys.executable, ["-c", code])).stdout.strip())

    runtime = (await load()).runtime
    runtime.bind(SimpleNamespace(register_provider=refuse), faults.append)
    loading = loader.load_extensions([], cwd=tmp_path, runtime=runtime, inline=[setup])
    assert (await asyncio.wait_for(loading, 20)).errors == []
    assert where == [str(tmp_path.resolve())]
    assert [fault.path for fault in faults] == ["<inline:1>"]


# --- imports ---
async def test_helpers_are_fresh_and_the_own_ones_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: list[Any]
) -> None:
    """Where nothing was imported before, helpers come from their source; other packages stay Python's."""
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    write(tmp_path / "site" / "plain23" / "__init__.py")
    write(tmp_path / "site" / "plain23" / "sub.py", "VALUE = 'plain'\n")
    main = "import helper\nfrom pack.sub import VALUE\nfrom pack import VALUE as top\n"
    main += "import plain23.sub\nfrom notes23 import note\n"
    main += "helper_again = __import__('helper')\nassert helper_again is helper\n"
    main += "def setup(api):\n    note((helper.VALUE, VALUE, top, plain23.sub.VALUE))\n"
    main += "    note([helper.__file__, __file__])\n"
    path = write(tmp_path / "extension" / "main.py", main)
    write(tmp_path / "extension" / "pack" / "__init__.py", "VALUE = 'pack'\n")
    write(tmp_path / "extension" / "pack" / "sub.py", "VALUE = 'sub'\n")
    helper = tmp_path / "extension" / "helper.py"
    for value in "AB":
        before = helper.stat() if helper.exists() else None
        write(helper, f"VALUE = '{value}'\n")
        if before is not None:
            os.utime(helper, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            importlib.import_module("py_compile").compile(str(helper), doraise=True)
        assert (await load(paths=[path])).errors == []
    assert [note[0] for note in notes[::2]] == ["A", "B"]
    assert notes[0][1:] == ("sub", "pack", "plain")
    assert notes[1] == [str(helper), path]
    assert type(sys.modules["plain23.sub"].__loader__) is SourceFileLoader
    for name in ("plain23", "plain23.sub"):
        sys.modules.pop(name)


async def test_a_folder_s_init_is_the_package_that_its_helpers_see(tmp_path: Path, notes: list[Any]) -> None:
    """`from . import name` in a helper means the extension itself, where that is an `__init__.py`."""
    source = "VALUE = 'own'\nfrom . import helper\ndef setup(api):\n    helper.tell()\n"
    path = write(tmp_path / "__init__.py", source)
    helper = "from notes23 import note\ndef tell():\n    from . import VALUE\n    note(VALUE)\n"
    write(tmp_path / "helper.py", helper)
    assert (await load(paths=[path])).errors == []
    assert notes == ["own"]


async def test_a_module_without_a_setup_says_so(tmp_path: Path) -> None:
    """A missing setup has the message of one that can't be called."""
    path = write(tmp_path / "nothing.py")
    [error] = (await load(paths=[path])).errors
    assert error.error == f"Extension does not export a valid factory function: {path}"


async def test_only_a_whole_label_is_no_file(tmp_path: Path) -> None:
    """A path that merely ends like a label is a file; one that does not resolve is just made absolute."""
    path = write(tmp_path / "odd>", "def setup(api):\n    pass\n")
    assert [each.path for each in (await load(paths=[path])).extensions] == [path]
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    missing = str(tmp_path / "link" / "missing.py")
    assert sources.canonical_path(missing) == missing


async def test_the_stand_alone_helper_takes_files_and_a_door(tmp_path: Path) -> None:
    """A path that is a file stands for itself, and `import_module` is asked for it."""
    path, asked = write(tmp_path / "one.py"), list[str]()

    def import_module(name: str) -> Any:
        asked.append(name)
        return SimpleNamespace(setup=lambda api: None)

    loading = loader.discover_and_load_extensions(
        [path], cwd=tmp_path, agent_dir=tmp_path / "agent", import_module=import_module
    )
    result = await asyncio.wait_for(loading, 20)
    assert ([each.path for each in result.extensions], len(asked)) == ([path], 1)


def test_every_listing_goes_through_the_door(tmp_path: Path) -> None:
    """Settings, automatic folders, packages and the command line are listed by `scandir`."""
    places = [tmp_path / name for name in ("set", "cli", "pack", "agent/extensions", "cwd/.pi/extensions")]
    for place in places:
        write(place / "one.py")
    listed: list[str] = []

    def scandir(path: Any) -> Any:
        listed.append(os.fspath(path))
        return os.scandir(path)

    project = packages.ExtensionSettings([str(places[0])], [str(places[2])])
    user = packages.ExtensionSettings([], [])
    found = {"project": project, "user": user, "trusted": True, "entry_points": lambda group: []}
    packages.resolve_extensions(
        cwd=tmp_path / "cwd", agent_dir=tmp_path / "agent", cli=[str(places[1])], scandir=scandir, **found
    )
    assert {str(place) for place in places} <= set(listed)


def test_metadata_say_where_each_path_came_from(tmp_path: Path) -> None:
    """Source, scope, origin and base directory of every kind of path; an empty entry is none."""
    cwd, agent = tmp_path / "cwd", tmp_path / "agent"
    for place in ("cwd/file.py", "cwd/tool/one.py", "agent/set.py", "agent/stray.py", "agent/pack/one.py"):
        write(tmp_path / place)
    for folder in (cwd / ".pi", agent):
        write(folder / "extensions" / "auto.py")
    resolved = packages.resolve_extensions(
        cwd=cwd,
        agent_dir=agent,
        project=packages.ExtensionSettings([], []),
        user=packages.ExtensionSettings(["", "!", "set.py"], ["", "./pack"]),
        cli=["file.py", "tool"],
        trusted=True,
        entry_points=lambda group: [SimpleNamespace(name="offer")],
    )
    told = [
        (each.metadata.source, each.metadata.scope, each.metadata.origin, each.metadata.base_dir)
        for each in resolved.paths
    ]
    assert told == [
        ("cli", "temporary", "top-level", str(cwd)),
        ("cli", "temporary", "top-level", str(cwd / "tool")),
        ("auto", "project", "top-level", str(cwd / ".pi")),
        ("local", "user", "top-level", str(agent)),
        ("auto", "user", "top-level", str(agent)),
        ("./pack", "user", "package", str(agent / "pack")),
        ("entry-point", "user", "package", None),
    ]


def test_a_byte_order_mark_hides_no_rule(tmp_path: Path) -> None:
    """The first rule of an ignore file counts with a byte order mark before it, too."""
    for name in ("a.py", "b.py"):
        write(tmp_path / name)
    write(tmp_path / ".gitignore", "\ufeffb.py\n")
    assert [Path(path).name for path in packages.collect_auto_extensions(tmp_path)] == ["a.py"]


# --- the runner ---
async def test_verdicts_hold_what_there_is_to_tell() -> None:
    """A block keeps call and path, its reason is empty where none was given; input keeps its text."""
    call = ToolCall("call-1", "shell", {"text": "ls"})
    running, _ = await run_by(on("tool_call", lambda event: {"block": True}))
    verdict = await running.emit_tool_call(call)
    assert verdict == runner.ToolCallVerdict(call, True, "", "<inline:1>")
    answers = [{"action": "transform"}, {"action": "transform", "text": "b"}, {"action": "handled"}]
    for count, expected in ((1, ("a", False)), (2, ("b", False)), (3, ("b", True))):
        handlers = [lambda event, answer=answer: answer for answer in answers[:count]]
        running, _ = await run_by(on("input", *handlers))
        said = await running.emit_input("a")
        assert (said.text, said.handled) == expected


async def test_before_bind_no_host_is_shown() -> None:
    """A runner that no session has bound has no host."""
    running, _ = await run_by()
    assert running.create_context().host is None


async def test_an_old_cancellation_is_not_taken_for_a_new_one() -> None:
    """Where the caller has survived a cancellation, a handler's own is still only a fault."""

    def cancelling(event: Any) -> None:
        raise asyncio.CancelledError

    running, faults = await run_by(on("input", cancelling))
    texts: list[str] = []

    async def ask() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            texts.append((await running.emit_input("hello")).text)

    asking = asyncio.ensure_future(ask())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking}, timeout=10)
    assert (texts, [fault.event for fault in faults]) == (["hello"], ["input"])


async def test_answers_are_judged_from_the_first_import_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner module that is imported anew knows good answers from bad ones all the same."""
    name = runner.__name__
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys.modules[name.rpartition(".")[0]], "runner", runner)
    fresh = importlib.import_module(name)
    result = ToolResultMessage("call-1", "shell", [TextContent("old")], False, 7)
    patches: list[Any] = [{"content": [TextContent("new")], "is_error": True}, {"content": ["bad"]}]
    patches += [{"is_error": 1}, {"content": "bad"}, {"unknown": 1, "is_error": False}, ["is_error"], "bad"]
    loaded = await load(on("tool_result", *(lambda event, patch=patch: patch for patch in patches)))
    running = fresh.ExtensionRunner(loaded.extensions, loaded.runtime, cwd=os.curdir)
    faults: list[Any] = []
    running.on_error(faults.append)
    patched = await running.emit_tool_result(result)
    assert (text_of(patched), patched.is_error, len(faults)) == ("new", True, 6)
    loaded = await load(on("context", lambda event: {"messages": [user_message("b")]}))
    running = fresh.ExtensionRunner(loaded.extensions, loaded.runtime, cwd=os.curdir)
    assert [text_of(each) for each in await running.emit_context([user_message("a")])] == ["b"]


# --- sessions and resource loaders ---
async def test_a_session_starts_with_its_reason_and_answers_like_the_core() -> None:
    """The first start has the reason `startup`; what can't run gets Chapter 06's own error result."""
    reasons: list[Any] = []
    note = on("session_start", lambda event: reasons.append(event.reason))
    discover = on("resources_discover", lambda event: reasons.append(event.reason))

    async def nothing(arguments: Any, context: Any) -> str:
        return "done"

    tool = ToolDefinition("read", "reads", {"type": "object", "required": ["path"]}, nothing)
    shelf = holding(await load(note, discover))
    serving = session.AgentSession(session.AgentParts(), shelf, builtin_tools=[tool])
    await asyncio.wait_for(serving.bind(), 10)
    assert reasons == ["startup", "startup"]
    registry = ToolRegistry()
    registry.register(tool)
    for call in (ToolCall("1", "unknown", {}), ToolCall("2", "read", {})):
        usual = await execute_tool_call(call, registry, ToolContext(AbortController().signal))
        answered = await serving.execute(call)
        assert (answered.is_error, answered.tool_call_id) == (usual.is_error, call.id)
        assert call.name in text_of(answered) or text_of(answered) == text_of(usual)


async def test_a_resource_loader_uses_its_doors_and_the_user_s_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `home` the user's counts; modules come by `import_module`, the real source with its path."""
    base = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(base))
    monkeypatch.setenv("USERPROFILE", str(base))
    (base / ".agents" / "skills").mkdir(parents=True)
    path, asked = write(base / "project" / ".pi" / "extensions" / "one.py"), list[str]()
    directories: list[Any] = []

    def import_module(name: str) -> Any:
        asked.append(name)
        return SimpleNamespace(setup=lambda api: None)

    def resolve(running: Any) -> bool:
        directories.append((running.cwd, running.create_context().cwd))
        return True

    shelf = session.ResourceLoader(
        cwd=base / "project", agent_dir=base / "agent", import_module=import_module
    )
    result = await asyncio.wait_for(shelf.reload(resolve), 20)
    assert asked == [path]
    assert directories == [(str(base / "project"),) * 2]
    assert [each.source_info.path for each in result.extensions] == [path]
    plain = session.ResourceLoader(cwd=base / "plain", agent_dir=base / "agent")
    await asyncio.wait_for(plain.reload(lambda running: pytest.fail("home's skills are the user's")), 20)


# --- trust ---
def test_outside_of_home_nothing_is_asked_for_without_need(tmp_path: Path) -> None:
    """A project that is not below home and has nothing that needs trust needs none."""
    project = tmp_path / "elsewhere" / "project"
    project.mkdir(parents=True)
    assert not trust.requires_trust(project, home=tmp_path / "home")


def test_the_store_s_folders_are_made_and_its_files_lie_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing folders are made, and nothing is written anywhere but beside the store's file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    store = trust.TrustStore(tmp_path / "state" / "deep" / "trust.json")
    store.set(tmp_path, True)
    assert store.get(tmp_path / "below") is True
