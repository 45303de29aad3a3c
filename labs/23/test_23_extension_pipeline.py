"""Chapter 23: from a path to running behaviour, resolved, imported, bound, and only after trust."""

import asyncio
import os
import py_compile
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pi_course.extensions import api as api_module
from pi_course.extensions import loader, packages, runner, session, trust
from pi_course.messages import TextContent, ToolCall, ToolResultMessage, text_of, user_message
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition


def write(path: Path, text: str = "") -> str:
    """Write a file, folders and all, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def tool(name: str) -> ToolDefinition:
    """A tool that does nothing."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> str:
        return f"{name} done"

    return ToolDefinition(name, f"the tool {name}", {"type": "object"}, execute)


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list in which extension files note what they do: `from ledger23 import note`."""
    notes: list[Any] = []
    module = ModuleType("ledger23")
    vars(module)["note"] = notes.append
    monkeypatch.setitem(sys.modules, "ledger23", module)
    return notes


async def within(awaitable: Awaitable[Any], seconds: float = 10.0) -> Any:
    """What the awaitable gives, or a failure if it is not there after that time."""
    done, _ = await asyncio.wait({task := asyncio.ensure_future(awaitable)}, timeout=seconds)
    return task.result() if done else pytest.fail(f"still waiting after {seconds} s")


async def load_inline(*factories: Callable[[Any], Any], runtime: Any = None) -> Any:
    """Load factories as a host brings them; what is not written yet comes out, and is no load error."""
    missing: list[NotImplementedError] = []

    def guarded(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def setup(api: Any) -> None:
            try:
                await (factory(api) or asyncio.sleep(0))
            except NotImplementedError as error:
                missing.append(error)
                raise

        return setup

    inline = [*map(guarded, factories)]
    result = await within(loader.load_extensions([], cwd=os.curdir, runtime=runtime, inline=inline))
    for error in missing:
        raise error
    return result


# --- Lab 23.1 --------------------------------------------------------------------------------------------


def under(root: Path, paths: list[str]) -> list[str]:
    """Paths as they read below a root."""
    return [Path(os.path.relpath(path, root)).as_posix() for path in paths]


def manifest(folder: Path, *entries: object) -> None:
    """Write a pyproject.toml that declares a package's extensions."""
    write(folder / "pyproject.toml", f"[tool.pi]\nextensions = {list(entries)!r}\n")


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_the_two_scans_look_one_level_deep_and_differ_at_the_root(tmp_path: Path) -> None:
    """Both scans take files and sub-folders' entries; production's minds the root's own and ignore files."""
    scans = (packages.discover_extensions_in_dir, packages.collect_auto_extensions)
    root = tmp_path / "extensions"
    for name in ("one.py", "skipped.py", "notes.txt", "stub.pyi", ".hidden.py", "deep/er/index.py"):
        write(root / name)
    for folder in ("__pycache__", "node_modules", ".dot", "three", "pack", "empty", "odd"):
        write(root / folder / "index.py")
    for name in ("three/__init__.py", "four/__init__.py", "pack/main.txt", "odd/__init__.py"):
        write(root / name)
    manifest(root / "pack", "missing.py", "main.txt")
    manifest(root / "empty", "missing.py")
    manifest(root / "odd", "__init__.py", 1)
    write(root / ".gitignore", "skipped.py\n")
    entries = ["empty/index.py", "four/__init__.py", "odd/index.py", "one.py", "pack/main.txt"]
    assert under(root, scans[0](root)) == [*entries, "skipped.py", "three/index.py"]
    assert under(root, scans[1](root)) == [*entries, "three/index.py"]

    # The root's own index, and before it its own manifest, is the whole answer of the production scan.
    write(root / "index.py")
    assert under(root, scans[1](root)) == ["index.py"]
    manifest(root, "three/index.py", "one.py")
    assert "three/index.py" in under(root, scans[0](root))
    assert under(root, scans[1](root)) == ["three/index.py", "one.py"]
    assert [scan(tmp_path / "nowhere") for scan in scans] == [[], []]


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_ignore_rules_links_and_manifests_keep_their_bounds(tmp_path: Path) -> None:
    """Ignore files are one list of rules, links count as what they lead to, a manifest never leads out."""
    root, outside = tmp_path / "extensions", write(tmp_path / "outside" / "index.py")
    last = ["é.py", "\uff5e.py", "\U0001f600.py"]  # by bytes, as UTF-8 has them
    for name in ("Z.py", "a.py", "b.py", "c.py", *last, "generated/index.py", "sub/index.py"):
        write(root / name)
    write(root / ".gitignore", "[bc].py\ngenerated/\n!b.py\n")
    write(root / ".ignore", "a.py\n!c.py\n")
    write(root / ".fdignore", "b.py\n!a.py\n")
    write(root / "sub" / ".gitignore", "index.py\n")
    (root / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    (root / "link.py").symlink_to(outside)
    (root / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (root / "loop.py").symlink_to("loop.py")

    def shuffled(path: Any) -> Any:
        return random.sample(listing := list(os.scandir(path)), len(listing))

    expected = ["Z.py", "a.py", "c.py", "link.py", "linked/index.py", "sub/index.py", *last]
    for _ in range(5):
        assert under(root, packages.collect_auto_extensions(root, scandir=shuffled)) == expected

    pack = tmp_path / "pack"
    write(pack / "index.py")
    (pack / "link.py").symlink_to(outside)
    write(tmp_path / "pack-old" / "x.py")
    manifest(pack, "../outside/index.py", outside, "link.py", "../pack-old/x.py")
    assert under(pack, packages.collect_auto_extensions(pack)) == ["index.py"]


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_the_best_rank_comes_first_and_wins_for_each_canonical_path(tmp_path: Path) -> None:
    """Command line, project, user, packages; of aliases the best-ranked stays, even a disabled one."""
    cwd, agent_dir, files = tmp_path / "cwd", tmp_path / "agent", ("z/cli", "a/cli", "p2", "p1", "u")
    cli_z, cli_a, p2, p1, u = [write(tmp_path / f"{name}.py") for name in files]
    own, shared, both = [write(tmp_path / name / "main.py") for name in ("own", "shared", "both")]
    for main in (own, shared, both):
        manifest(Path(main).parent, "main.py")
    project_auto = write(cwd / ".pi" / "extensions" / "auto.py")
    user_auto = write(agent_dir / "extensions" / "auto.py")
    (agent_dir / "extensions" / "alias.py").symlink_to(project_auto)
    (tmp_path / "z-link.py").symlink_to(u)
    alias, packs = str(tmp_path / "z-link.py"), [str(tmp_path / name) for name in ("both", "own", "shared")]
    project = packages.ExtensionSettings([p2, p1, alias, "!*z-link.py"], packs[:2])
    user = packages.ExtensionSettings([u, both], packs[:0:-1])
    given: Any = {"project": project, "user": user, "trusted": True, "entry_points": lambda group: []}
    given |= {"cwd": cwd, "agent_dir": agent_dir, "cli": [cli_z, "../a/cli.py", p1]}
    resolved = packages.resolve_extensions(**given)
    assert resolved.errors == []
    order = [cli_z, cli_a, p1, p2, alias, project_auto, both, user_auto, own, shared]
    assert [each.path for each in resolved.paths] == order
    assert [each.path for each in resolved.paths if not each.enabled] == [alias]
    origins = [(each.metadata.scope, each.metadata.origin) for each in resolved.paths]
    scopes = ["temporary"] * 3 + ["project"] * 3 + ["user"] * 2 + ["project", "user"]
    assert origins == list(zip(scopes, ["top-level"] * 8 + ["package"] * 2, strict=True))


def install(site: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution that offers the module as an extension named `offer`."""
    write(site / f"{module}.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    write(site / f"{module}.dist-info" / "entry_points.txt", f"[pi.extensions]\noffer = {module}\n")
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_switches_leave_out_what_they_name_and_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patterns, no_extensions and missing trust decide what is listed, and names of entry points suffice."""
    cwd, agent_dir = tmp_path / "cwd", tmp_path / "agent"
    auto, local, packed = [write(cwd / name) for name in (".pi/extensions/own.py", "set.py", "pack/index.py")]
    a, b, c, d = [write(agent_dir / "extensions" / f"{name}.py") for name in "abcd"]
    write(tmp_path / "site" / "offered23.py")
    install(tmp_path / "site", "offered23", monkeypatch)
    project = packages.ExtensionSettings([local], [str(cwd / "pack")])
    patterns = [f"-{d}", f"+{d}", f"+{b}", "!*.py", f"+{a}"]
    user = packages.ExtensionSettings([str(tmp_path / "missing.py"), *patterns], [])

    def resolve(**options: Any) -> list[tuple[str, bool]]:
        resolved = packages.resolve_extensions(
            cwd=cwd, agent_dir=agent_dir, project=project, user=user, **options
        )
        errors.extend((each.path, each.error) for each in resolved.errors)
        return [(each.path, each.enabled) for each in resolved.paths]

    errors: list[tuple[str, str]] = []
    users, offer = [(a, True), (b, True), (c, False), (d, False)], "<entry-point:offer>"
    assert resolve(trusted=True) == [(local, True), (auto, True), *users, (packed, True), (offer, True)]
    assert [each for each in resolve() if each[0] != offer] == users
    assert errors == []
    assert resolve(trusted=True, cli=["no/where.py", c], no_extensions=True) == [(c, True)]
    missing = str(cwd / "no" / "where.py")
    assert errors == [(missing, f"Extension path does not exist: {missing}")]
    assert "offered23" not in sys.modules


# --- Lab 23.2 --------------------------------------------------------------------------------------------


@pytest.mark.lab23
@pytest.mark.lab23_2
async def test_paths_load_one_after_another_and_failures_are_collected(
    tmp_path: Path, ledger: list[Any]
) -> None:
    """Each path is imported and its factory done before the next, and a failure stops nobody else."""
    setup = "from ledger23 import note\nimport asyncio, sys\nnote('import {0}')\nasync def setup(api):\n"
    setup += "    note('setup {0}')\n    await asyncio.sleep(0.01)\n    {1}\n    note('done {0}')\n"
    sources = {name: setup.format(name, "pass") for name in ("z", "broken", "exits", "bare", "late", "a")}
    sources |= {"broken": "raise ValueError('no import today')", "exits": "import sys\nsys.exit(3)"}
    sources |= {"bare": "setup = 1", "late": setup.format("late", "sys.exit('no factory today')")}
    paths = [write(tmp_path / f"{name}.py", source) for name, source in sources.items()]
    result = await within(loader.load_extensions([*paths, "gone.py"], cwd=tmp_path))
    assert [each.path for each in result.extensions] == [paths[0], paths[5]]
    steps = "import z, setup z, done z, import late, setup late, import a, setup a, done a"
    assert ", ".join(ledger) == steps
    assert [each.path for each in result.errors] == [*paths[1:5], "gone.py"]
    broken, exits, bare, late, gone = [each.error for each in result.errors]
    assert bare == f"Extension does not export a valid factory function: {paths[3]}"
    for text in (broken, exits, late, gone):
        assert text.startswith("Failed to load extension: ")
    assert ("no import today" in broken, "no factory today" in late) == (True, True)

    # Cancellation and Ctrl-C are no failures of an extension: they end the load.
    for ending in ("asyncio.CancelledError", "KeyboardInterrupt"):
        path = write(tmp_path / "ends.py", f"import asyncio\nraise {ending}")
        with pytest.raises((asyncio.CancelledError, KeyboardInterrupt)):
            await loader.load_extensions([path], cwd=tmp_path)


@pytest.mark.lab23
@pytest.mark.lab23_2
async def test_every_load_is_fresh_down_to_the_helpers(tmp_path: Path, ledger: list[Any]) -> None:
    """A load runs the source as it is now, an edit of equal size and time too, in modules of its own."""
    source = "import helper\nfrom ledger23 import note\nVALUE = 'A'\n"
    source += "def setup(api):\n    note((VALUE, helper.VALUE, __name__, helper.__name__))\n"
    main, helper = Path(write(tmp_path / "one" / "main.py", source)), tmp_path / "one" / "helper.py"
    write(helper, "VALUE = 'A'\n")
    write(tmp_path / "two" / "helper.py", "VALUE = 'two'\n")
    other = write(tmp_path / "two" / "__init__.py", source.replace("import helper", "from . import helper"))
    path, modules = list(sys.path), set(sys.modules)

    async def load(name: Any) -> None:
        assert (await within(loader.load_extensions([str(name)], cwd=tmp_path))).errors == []

    [await load(name) for name in (main, other, main)]
    for file in (main, helper):
        before = file.stat()
        py_compile.compile(str(file), doraise=True)
        write(file, file.read_text("utf-8").replace("'A'", "'B'"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        await load(main)
    assert [note[:2] for note in ledger] == [("A", "A"), ("A", "two"), ("A", "A"), ("B", "A"), ("B", "B")]
    assert [len({note[position] for note in ledger}) for position in (2, 3)] == [5, 5]
    assert sys.path == path
    assert not {"helper", "main", "one", "two"} & (set(sys.modules) - modules)


@pytest.mark.lab23
@pytest.mark.lab23_2
async def test_the_cache_keeps_factories_of_one_cwd_and_generation(tmp_path: Path) -> None:
    """Two cached loads are one import and two runs; what is cleared, of another cwd or failed isn't kept."""
    path, imports, apis = write(tmp_path / "extension.py"), list[str](), list[Any]()
    failures, gate, cached = [ValueError("no import yet")], asyncio.Event(), loader.ExtensionLoader()
    gate.set()

    async def import_module(name: str) -> Any:
        imports.append(name)
        await within(gate.wait())
        if failures:
            raise failures.pop()
        return SimpleNamespace(setup=apis.append)

    async def load(cwd: Path = tmp_path, name: str = path) -> Any:
        return await within(cached.load_cached([name], cwd=cwd, import_module=import_module))

    assert len((await load()).errors) == 1
    first, second = await load(), await load(name="./extension.py")
    assert (len(imports), len(apis)) == (2, 2)
    assert first.extensions[0] is not second.extensions[0]
    assert (apis[0] is apis[1], first.runtime is second.runtime) == (False, False)
    await loader.load_extensions([path], cwd=tmp_path, import_module=import_module)
    await load(tmp_path.parent)
    await load()
    assert len(imports) == 5

    cached.clear()
    gate.clear()
    under_way = asyncio.ensure_future(load())
    await asyncio.sleep(0.01)
    cached.clear()
    gate.set()
    assert len((await within(under_way)).extensions) == 1
    await load()
    assert len(imports) == 7


@pytest.mark.lab23
@pytest.mark.lab23_2
async def test_inline_factories_and_entry_points_join_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: list[Any]
) -> None:
    """Files, entry points and inline factories end in one list and runtime, each with a synthetic source."""
    write(tmp_path / "site" / "installed23.py", "from ledger23 import note\nnote('imported')\nsetup = note\n")
    install(tmp_path / "site", "installed23", monkeypatch)
    real = write(tmp_path / "real" / "file.py", "def setup(api): pass")
    (tmp_path / "link.py").symlink_to(real)
    user = packages.ExtensionSettings([str(tmp_path / "link.py"), "!*link.py"], [])
    resolved = packages.resolve_extensions(
        cwd=tmp_path, agent_dir=tmp_path, project=packages.ExtensionSettings([], []), user=user, trusted=True
    )
    assert ledger == []
    inline = [ledger.append, loader.InlineExtension(ledger.append, "named"), ledger.append]
    paths = [*resolved.paths, "link.py"]
    result = await within(loader.load_extensions(paths, cwd=tmp_path, inline=inline))
    sys.modules.pop("installed23", None)
    assert (result.errors, ledger[0], len(ledger)) == ([], "imported", 5)
    labels = ["<entry-point:offer>", "link.py", "<inline:1>", "<inline:named>", "<inline:3>"]
    assert [each.path for each in result.extensions] == labels
    sources = [each.source_info for each in result.extensions]
    assert [each.source for each in sources] == ["entry-point", "local", "inline", "inline", "inline"]
    assert {each.scope for each in sources} == {"temporary"}
    assert (sources[0].base_dir, sources[1].base_dir) == (None, os.path.realpath(tmp_path / "real"))


# --- Lab 23.3 --------------------------------------------------------------------------------------------


def refusal(action: Callable[[], object]) -> str:
    """The text of the ExtensionError that an action must raise."""
    with pytest.raises(ExtensionError) as caught:
        action()
    return str(caught.value)


@pytest.mark.lab23
@pytest.mark.lab23_3
async def test_registrations_go_into_the_extension_s_own_maps() -> None:
    """The same name again overwrites in place, handlers append; of a flag the first default stays."""

    def one(api: Any) -> None:
        for each in (tool("read"), tool("write"), again):
            api.register_tool(each)
        for handler in (print, repr, print):
            api.on("tool_call", handler)
            api.register_command("review", handler, description=handler.__name__)
            api.register_shortcut("ctrl+r", handler)
            api.register_message_renderer("note", handler)
        for default in ("first", "second"):
            api.register_flag("mode", type="string", default=default)
            api.register_entry_renderer(default, repr)
        for default in (None, False, True):
            api.register_flag("fast", type="boolean", default=default)
        seen.append([api.get_flag(name) for name in ("mode", "fast", "set")])

    def two(api: Any) -> None:
        for name in ("mode", "set"):
            api.register_flag(name, type="string", default="other")
        seen.append([api.get_flag(name) for name in ("mode", "fast", "set")])

    again, seen, runtime = tool("read"), list[Any](), api_module.ExtensionRuntime()
    runtime.flag_values["set"] = "by the host"
    first, second = (await load_inline(one, two, runtime=runtime)).extensions
    assert [*first.tools] == ["read", "write"]
    assert first.tools["read"].definition is again
    assert first.handlers == {"tool_call": [print, repr, print]}
    assert [(name, each.description) for name, each in first.commands.items()] == [("review", "print")]
    assert ([*first.shortcuts], first.shortcuts["ctrl+r"].handler) == (["ctrl+r"], print)
    assert (first.message_renderers, [*first.entry_renderers]) == ({"note": print}, ["first", "second"])
    assert {name: each.default for name, each in first.flags.items()} == {"mode": "second", "fast": True}
    assert (second.tools, second.handlers, [*second.flags]) == ({}, {}, ["mode", "set"])
    assert seen == [["first", False, None], ["first", None, "by the host"]]
    assert runtime.flag_values == {"mode": "first", "fast": False, "set": "by the host"}


@pytest.mark.lab23
@pytest.mark.lab23_3
async def test_actions_wait_for_the_core_and_the_rest_works_at_once() -> None:
    """Actions raise until the core is bound, providers queue, tools, exec and the bus work at once."""

    async def early(api: Any) -> None:
        api.register_tool(tool("early"))
        api.events.on("news", heard.append)
        api.events.emit("news", "at once")
        for name in ("good", "bad", "fine"):
            api.register_provider(name, {"from": "early"})
        heard.append((await api.exec(sys.executable, ["-c", "print('ran')"])).stdout.strip())
        actions = [api.get_active_tools, api.abort, api.compact, lambda: api.send_message("x")]
        actions += [lambda: api.set_active_tools([]), lambda: api.set_model(0), lambda: api.append_entry("x")]
        heard.extend({refusal(action) for action in actions})
        kept.append(api)

    def register_provider(name: str, config: Any) -> None:
        if name == "bad":
            raise ValueError("no such provider")
        done.append((name, config["from"]))

    heard, kept, done, faults = list[Any](), list[Any](), list[Any](), list[Any]()
    result = await load_inline(early)
    initial = "Extension runtime not initialized. Action methods cannot be called during extension loading."
    assert (heard, done) == (["at once", "ran", initial], [])
    core = SimpleNamespace(send_message=done.append, refresh_tools=lambda: done.append("refresh"))
    core.register_provider, core.get_active_tools = register_provider, lambda: ["early"]
    result.runtime.bind(core, faults.append)
    assert done == [("good", "early"), ("fine", "early")]
    assert ["no such provider" in str(fault) for fault in faults] == [True]
    kept[0].send_message("hello")
    kept[0].register_tool(tool("late"))
    kept[0].register_provider("next", {"from": "late"})
    assert done[2:] == ["hello", "refresh", ("next", "late")]
    assert kept[0].get_active_tools() == ["early"]
    assert [*result.extensions[0].tools] == ["early", "late"]


@pytest.mark.lab23
@pytest.mark.lab23_3
async def test_a_failed_factory_leaves_nothing_in_what_all_share() -> None:
    """Flag defaults, queued providers and listeners of a failed factory vanish, and nobody takes others'."""

    def first(api: Any) -> None:
        api.register_provider("shared", {"from": "first"})

    async def failing(api: Any) -> None:
        kept.append(api)
        api.register_flag("mode", type="string", default="failing")
        api.register_provider("failing", {})
        api.events.on("news", lambda data: heard.append(("failing", data)))
        api.unregister_provider("shared")
        await asyncio.sleep(0)
        raise ValueError("too late")

    def lasting(api: Any) -> None:
        api.register_flag("mode", type="string", default="lasting")
        for kind, default in (("boolean", "yes"), ("string", True), ("boolean", 1)):
            refusal(lambda kind=kind, default=default: api.register_flag("x", type=kind, default=default))
        api.events.on("news", lambda data: heard.append(("lasting", data)))
        for name in ("own", "shared"):
            api.register_provider(name, {"from": "lasting"})
            api.unregister_provider(name)
        api.events.emit("news", 1)

    heard, kept, registered = list[Any](), list[Any](), list[Any]()
    result = await load_inline(first, failing, lasting)
    assert [each.path for each in result.errors] == ["<inline:2>"]
    assert [each.path for each in result.extensions] == ["<inline:1>", "<inline:3>"]
    assert (result.runtime.flag_values, heard) == ({"mode": "lasting"}, [("lasting", 1)])
    result.runtime.bind(SimpleNamespace(register_provider=lambda *each: registered.append(each)))
    assert registered == [("shared", {"from": "first"})]
    refusal(lambda: kept[0].register_tool(tool("late")))
    refusal(lambda: kept[0].events.emit("news", 2))
    assert heard == [("lasting", 1)]


# --- Lab 23.4 --------------------------------------------------------------------------------------------
async def run_by(*setups: Callable[[Any], Any]) -> tuple[Any, list[tuple[str, str]]]:
    """A runner of inline extensions, and what its error listener hears."""
    result = await load_inline(*setups)
    running = runner.ExtensionRunner(result.extensions, result.runtime, cwd=os.curdir)
    faults: list[tuple[str, str]] = []
    running.on_error(lambda fault: faults.append((fault.path, fault.event)))
    return running, faults


def on(**handlers: list[Any]) -> Callable[[Any], None]:
    """A setup that registers handlers by event."""
    pairs = [(event, handler) for event, given in handlers.items() for handler in given]
    return lambda api: [api.on(*pair) for pair in pairs].clear()


def later(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same handler, as a coroutine function."""

    async def handle(event: Any) -> Any:
        return handler(event)

    return handle


def failing(event: Any) -> Any:
    """A handler that is broken."""
    raise RuntimeError("handler is broken")


@pytest.mark.lab23
@pytest.mark.lab23_4
async def test_equal_names_are_settled_by_their_kind() -> None:
    """The first extension wins a tool and a flag, the last a shortcut; every command keeps a name."""
    offered: dict[tuple[str, str], ToolDefinition] = {}

    def registering(owner: str, *commands: str) -> Callable[[Any], None]:
        def setup(api: Any) -> None:
            for name in ("shared", owner):
                offered[name, owner] = tool(name)
                api.register_tool(offered[name, owner])
                api.register_flag(name, type="boolean", description=owner)
                api.register_shortcut(name, print, description=owner)
            for name in commands:
                api.register_command(name, print, description=f"{owner} {name}")

        return setup

    async def names(*setups: Any) -> list[str]:
        commands = (await run_by(*setups))[0].commands()
        return [f"{name} = {command.description}" for name, command in commands.items()]

    running, _ = await run_by(registering("a"), registering("b"), registering("c"))
    winners = {"shared": "a", "a": "a", "b": "b", "c": "c"}
    won = [each.definition for each in running.tools().values()]
    assert won == [offered[item] for item in winners.items()]
    assert {name: flag.description for name, flag in running.flags().items()} == winners
    assert {key: each.description for key, each in running.shortcuts().items()} == winners | {"shared": "c"}
    a, b, plan = registering("a", "review"), registering("b", "review"), registering("plan", "plan")
    assert await names(a, plan, b) == ["review:1 = a review", "plan = plan plan", "review:2 = b review"]
    c = registering("c", "review:1")
    assert await names(a, b, c) == ["review:1 = a review", "review:2 = b review", "review:1:2 = c review:1"]
    assert await names(c, a, b) == ["review:1 = c review:1", "review:2 = a review", "review:3 = b review"]


@pytest.mark.lab23
@pytest.mark.lab23_4
async def test_a_tool_call_passes_every_handler_or_is_blocked() -> None:
    """Handlers edit a call's arguments one after another; the first that blocks or raises ends it."""
    seen: list[str] = []

    def adding(name: str, answer: Any = None) -> Callable[[Any], Any]:
        def handler(event: Any) -> Any:
            seen.append(f"{name}: {event.call.id} {event.call.name} {event.call.arguments['text']}")
            event.call.arguments["text"] += f" {name}"
            return answer

        return handler

    call = ToolCall("call-1", "shell", {"text": "ls"})
    allowing = [adding("a"), later(adding("b", {})), adding("c", {"block": False, "reason": "not needed"})]
    running, faults = await run_by(on(tool_call=allowing[:2]), on(tool_call=allowing[2:]))
    verdict = await running.emit_tool_call(call)
    assert seen == ["a: call-1 shell ls", "b: call-1 shell ls a", "c: call-1 shell ls a b"]
    assert (verdict.blocked, verdict.call) == (False, ToolCall("call-1", "shell", {"text": "ls a b c"}))
    assert call == ToolCall("call-1", "shell", {"text": "ls"})
    for block in (adding("x", {"block": True, "reason": "not today"}), failing):
        for form in (block, later(block)):
            handlers = ([adding("a")], [form, adding("b")], [adding("c")])
            running, faults = await run_by(*(on(tool_call=each) for each in handlers))
            seen.clear()
            verdict = await running.emit_tool_call(call)
            assert verdict.blocked
            assert [each[0] for each in seen] == ["a", "x"][: 1 if block is failing else 2]
            assert verdict.reason == "not today" or faults == [("<inline:2>", "tool_call")]


@pytest.mark.lab23
@pytest.mark.lab23_4
async def test_tool_result_patches_compose_by_the_keys_they_hold() -> None:
    """Each handler's patch replaces what it names, `False` and `None` too; a raising one changes nothing."""
    seen: list[Any] = []

    def patching(patch: Any) -> Callable[[Any], Any]:
        def handler(event: Any) -> Any:
            seen.append((text_of(event.result), event.result.details, event.result.is_error))
            return patch

        return handler

    failed = ToolResultMessage("call-1", "shell", [TextContent("missing")], True, 7, {"code": 2})
    running, faults = await run_by(
        on(tool_result=[patching({"content": []}), failing]),
        on(tool_result=[later(failing), later(patching({"is_error": False})), patching(None)]),
        on(tool_result=[patching({"details": None}), patching({})]),
    )
    patched = await running.emit_tool_result(failed)
    assert (patched.content, patched.details, patched.is_error, patched.timestamp) == ([], None, False, 7)
    steps = [("missing", {"code": 2}, True), ("", {"code": 2}, True), ("", {"code": 2}, False)]
    assert seen == [*steps, steps[2], ("", None, False)]
    assert faults == [("<inline:1>", "tool_result"), ("<inline:2>", "tool_result")]
    assert (text_of(failed), failed.details, failed.is_error) == steps[0]


@pytest.mark.lab23
@pytest.mark.lab23_4
async def test_every_other_event_fails_open_and_combines_its_answers() -> None:
    """Input, context, system prompt and cancellation pass handler after handler; faults are only reported."""
    seen: list[Any] = []

    def transform(event: Any) -> Any:
        return {"action": "transform", "text": event.text + "!"}

    def handle(event: Any) -> Any:
        seen.append(event.text)
        return {"action": "handled" if event.text.startswith("/") else "continue"}

    def edit(event: Any) -> Any:
        event.messages[0].content[0].text = "edited"
        return {"messages": event.messages * 2}

    def begin(event: Any) -> Any:
        return {"message": user_message(event.prompt), "system_prompt": event.system_prompt + "+"}

    events = {
        "input": [transform, failing, handle, transform],
        "context": [edit, failing, lambda event: seen.append(len(event.messages))],
        "before_agent_start": [begin, failing, later(begin), lambda event: {"system_prompt": "= last"}],
        "session_before_switch": [failing, later(lambda event: {"cancel": True})],
        "session_before_fork": [failing, lambda event: {}],
        "turn_end": [failing, lambda event: seen.append(event.reason)],
    }
    running, faults = await run_by(on(**events), on(input=[later(handle)], before_agent_start=[begin]))
    assert await running.emit_input("hello") == runner.InputVerdict("hello!!", handled=False)
    assert (await running.emit_input("/quit")).handled
    assert seen == ["hello!", "hello!!", "/quit!"]
    messages = [user_message("long")]
    assert [*map(text_of, await running.emit_context(messages) + messages)] == ["edited", "edited", "long"]
    start = await running.emit_before_agent_start("go", "base")
    assert (start.system_prompt, [*map(text_of, start.messages)]) == ("= last+", ["go"] * 3)
    for name, cancelled in (("session_before_switch", True), ("session_before_fork", False)):
        assert await running.emit_session_before(runner.ExtensionEvent(name)) is cancelled
    await running.emit(runner.ExtensionEvent("turn_end", reason="done"))
    assert seen[3:] == [2, "done"]
    assert sorted({event for _, event in faults}) == sorted(events)


# --- Lab 23.5 --------------------------------------------------------------------------------------------
def holding(result: Any) -> Any:
    """What a session needs of a resource loader, holding one load."""
    return SimpleNamespace(cwd=os.curdir, claim=lambda: asyncio.sleep(0, result))


@pytest.mark.lab23
@pytest.mark.lab23_5
async def test_tools_overwrite_one_another_by_name_and_only_new_ones_are_switched_on() -> None:
    """The host's tools win over extensions', these over built-in ones; a late tool is on where it is new."""
    apis: list[Any] = []
    grep, edit, ask, late = tool("grep"), tool("edit"), tool("ask"), tool("late")

    def setup(api: Any) -> None:
        apis.append(api)
        for each in (grep, tool("ask"), tool("edit")):
            api.register_tool(each)

    shelf = holding(await load_inline(setup, lambda api: api.register_tool(tool("grep"))))
    builtin, parts = [tool("grep"), tool("read")], session.AgentParts()
    serving = session.AgentSession(parts, shelf, builtin_tools=builtin, custom_tools=[ask])
    await serving.bind()
    registry, [api] = serving.tool_registry, apis
    assert sorted(registry.names()) == sorted(api.get_active_tools()) == ["ask", "edit", "grep", "read"]
    assert (registry.get("grep"), registry.get("ask"), registry.get("read")) == (grep, ask, builtin[1])
    api.set_active_tools(["grep", "read"])
    assert sorted(api.get_active_tools()) == ["grep", "read"]
    assert (await serving.execute(ToolCall("call-1", "edit", {}))).is_error
    for each in (late, edit, tool("ask")):
        api.register_tool(each)
    assert sorted(api.get_active_tools()) == ["grep", "late", "read"]
    assert registry.get("late") is late
    api.set_active_tools(["edit", "ask"])
    assert sorted(api.get_active_tools()) == ["ask", "edit"]
    assert (registry.get("edit"), registry.get("ask")) == (edit, ask)


@pytest.mark.lab23
@pytest.mark.lab23_5
async def test_binding_comes_before_the_start_and_contexts_live_as_long_as_the_session() -> None:
    """Building emits nothing; bind binds the core, starts, discovers; a kept context shows the present."""
    steps, kept, apis = list[Any](), list[Any](), list[Any]()

    def watch(event: Any) -> None:
        kept.append(event.context)
        steps.append((event.type, sorted(apis[0].get_active_tools())))

    def setup(api: Any) -> None:
        apis.append(api)
        api.register_tool(tool("grep"))
        on(session_start=[later(watch)], resources_discover=[watch], session_shutdown=[later(watch)])(api)

    shelf = holding(await load_inline(setup))
    parts = session.AgentParts(send_message=steps.append)
    serving = session.AgentSession(parts, shelf, builtin_tools=[tool("read")])
    assert steps == []
    assert "not initialized" in refusal(lambda: apis[0].send_message("too early"))
    await serving.bind()
    assert steps == [("session_start", ["grep", "read"]), ("resources_discover", ["grep", "read"])]
    apis[0].send_message("hello")
    apis[0].set_active_tools(["grep"])
    assert [context.active_tools for context in kept] == [["grep"], ["grep"]]
    assert kept[0].cwd == shelf.cwd
    await serving.dispose()
    assert steps[2:] == ["hello", ("session_shutdown", ["grep"])]
    for late in (lambda: kept[0].active_tools, lambda: kept[0].cwd, lambda: apis[0].send_message("late")):
        refusal(late)
    assert len(steps) == 4


@pytest.mark.lab23
@pytest.mark.lab23_5
async def test_a_call_reaches_the_core_once_or_not_at_all() -> None:
    """A blocked call gets a paired error and no core; an allowed one runs once, and its result is patched."""
    ran, patched = list[Any](), list[str]()

    async def shell(arguments: dict[str, Any], context: Any) -> str:
        ran.append(arguments["text"])
        return "files" if arguments["text"] == "ls" else failing(None)

    def guard(event: Any) -> Any:
        text = event.call.arguments["text"]
        event.call.arguments["text"] = 7 if text == "spoil" else text.strip()
        return {"block": "rm" in text, "reason": "it destroys"}

    def patch(event: Any) -> Any:
        patched.append(text_of(event.result))
        return {"content": [TextContent("patched")], "is_error": False}

    async def outcome(name: str, text: Any) -> tuple[bool, str]:
        result = await serving.execute(ToolCall(f"call {text}", name, {"text": text}))
        assert (result.tool_call_id, result.tool_name) == (f"call {text}", name)
        return result.is_error, text_of(result)

    builtin = [ToolDefinition("shell", "runs", {"properties": {"text": {"type": "string"}}}, shell)]
    shelf = holding(await load_inline(on(tool_call=[guard], tool_result=[patch])))
    serving = session.AgentSession(session.AgentParts(), shelf, builtin_tools=builtin)
    await serving.bind()
    is_error, text = await outcome("shell", "rm -rf /")
    assert (is_error, ran, patched) == (True, [], [])
    assert "it destroys" in text
    assert await outcome("shell", " ls ") == (False, "patched")
    assert (ran, patched) == (["ls"], ["files"])
    for name, value in (("unknown", "ls"), ("shell", 7), ("shell", "spoil")):
        assert (await outcome(name, value))[0], (name, value)
    assert await outcome("shell", "make") == (False, "patched")
    assert (ran, "broken" in patched[1]) == (["ls", "make"], True)


# --- Lab 23.6 --------------------------------------------------------------------------------------------
def write_noting(path: Path, *body: str) -> str:
    """Write an extension that notes its import and its setup; returns its path."""
    head = f"from ledger23 import note\nnote('import {path.stem}')\ndef setup(api):"
    return write(path, "\n    ".join([head, f"note('setup {path.stem}')", *body]))


@pytest.mark.lab23
@pytest.mark.lab23_6
async def test_a_project_is_imported_after_trust_and_nothing_twice(tmp_path: Path, ledger: list[Any]) -> None:
    """Before trust only the user's, CLI and inline extensions run; then the project's join, in order."""
    base, mode = tmp_path.resolve(), "api.register_flag('mode', type='string', default='a')"
    order = [
        write_noting(base / "named.py", mode),
        write_noting(base / "project/.pi/extensions/team.py", mode, "api.register_command('go', print)"),
        write_noting(base / "agent/extensions/mine.py", mode),
    ]
    broken = write_noting(base / "agent/extensions/broken.py", "raise ValueError('as it is')")
    early = [f"{what} {who}" for who in ("named", "broken", "mine") for what in ("import", "setup")]
    early.append("setup inline")
    places = {"cwd": base / "project", "agent_dir": base / "agent", "home": base}
    inline = [lambda api: ledger.append("setup inline")]
    asked: list[Any] = []

    def resolve(running: Any) -> bool:
        asked.append((running.runtime, list(ledger)))
        return len(asked) == 2

    for resolver, trusted in ((None, False), (resolve, False), (resolve, True)):
        ledger.clear()
        result = await session.ResourceLoader(**places, cli=order[:1], inline=inline).reload(resolver)
        assert not resolver or asked[-1] == (result.runtime, early)
        assert ledger == early + ["import team", "setup team"] * trusted
        paths = [order[0], *order[1:2] * trusted, order[2], "<inline:1>"]
        assert [each.path for each in result.extensions] == paths
    assert [each.source_info.scope for each in result.extensions[:3]] == ["temporary", "project", "user"]
    assert result.extensions[1].commands["go"].source_info == result.extensions[1].source_info
    errors = {each.path: each.error for each in result.errors}
    assert len(result.errors) == 3
    assert errors.pop(broken).startswith("Failed to load extension: ")
    assert errors == dict.fromkeys(order[1:], f'Flag "--mode" conflicts with {order[0]}')


@pytest.mark.lab23
@pytest.mark.lab23_6
async def test_trust_is_asked_for_where_needed_and_answered_in_turn(tmp_path: Path) -> None:
    """Certain resources require trust; extensions answer first, then the store, the default, the user."""
    home, asked = tmp_path.resolve() / "home", list[str]()
    needing = ("settings.json", "extensions", "skills", "prompts", "SYSTEM.md", "APPEND_SYSTEM.md")
    for name in (*needing, "themes"):
        (home / name / ".pi" / name).mkdir(parents=True)
        assert trust.requires_trust(home / name, home=home) is (name in needing), name
    for above in (home.parent, home, home / "shared"):
        (above / ".agents" / "skills").mkdir(parents=True)
    for cwd, needed in (("shared", True), ("shared/a/b", True), ("plain", False), ("skills/below", False)):
        assert trust.requires_trust(home / cwd, home=home) is needed, cwd

    store, ask = trust.TrustStore(tmp_path / "trust.json"), later(lambda cwd: asked.append(cwd) is None)
    for answers, stored, default, expected in (
        (["undecided", None, "yes", "no"], False, False, True),
        (["no", "yes"], True, True, False),
        ([failing, "yes"], False, False, True),
        ([failing, "undecided"], True, False, True),
        ([], False, True, False),
        (["undecided"], None, True, True),
        ([], None, False, False),
        (["undecided"], None, None, True),
    ):
        assert asked == []
        says = [each if each is failing else lambda event, each=each: each for each in answers]
        running, faults = await run_by(on(project_trust=says[:1]), on(project_trust=says[1:]))
        store.set(home, stored)
        doors = {"runner": running, "store": store, "default": default, "ask": ask}
        assert await trust.resolve_trust(cwd=home / "plain", **doors) is expected, answers
        assert faults == ([("<inline:1>", "project_trust")] if failing in answers else []), answers
    assert asked == [str(home / "plain")]


@pytest.mark.lab23
@pytest.mark.lab23_6
async def test_the_trust_store_answers_by_the_nearest_directory_and_never_guesses(tmp_path: Path) -> None:
    """The nearest ancestor decides; the file is replaced as a whole; damage is an error, never "no"."""
    base = tmp_path.resolve()
    work, file = base / "work", base / "state" / "trust.json"
    (work / "mine" / "deep").mkdir(parents=True)
    (base / "link").symlink_to(work / "mine")
    places = (work, work / "mine", work / "mine" / "deep", base / "link" / "deep", work / "mine-too", base)
    store = trust.TrustStore(file)
    assert store.get(work) is None
    store.set(work, False)
    store.set(base / "link", True)
    for reader in (store, trust.TrustStore(file)):
        assert [reader.get(place) for place in places] == [False, True, True, True, False, None]
    # Who reads while an answer is written has the whole of the old ones.
    with file.open(encoding="utf-8") as held:
        whole = file.read_text(encoding="utf-8")
        store.set(work / "mine", None)
        assert held.read() == whole
    assert [store.get(place) for place in places] == [False, False, False, False, False, None]
    running, _ = await run_by()
    for damage in ("", "{", "[]", "null", f'{{"{work}": "yes"}}', f'{{"{work}": null}}', f'{{"{base}": 1}}'):
        write(file, damage)
        with pytest.raises(trust.TrustStoreError):
            store.set(work, True)
        with pytest.raises(trust.TrustStoreError):
            await trust.resolve_trust(cwd=work, runner=running, store=store, default=True, ask=None)
        assert file.read_text(encoding="utf-8") == damage


@pytest.mark.lab23
@pytest.mark.lab23_6
async def test_a_reload_replaces_every_extension_in_order(tmp_path: Path, ledger: list[Any]) -> None:
    """Shutdown, settings, providers, load, bind, start; flags and switches stay, the old runtime is dead."""
    apis: list[Any] = []

    def note(event: Any) -> None:
        ledger.append(f"{event.type} {event.reason} {apis[-1].get_flag('limit')}")

    def setup(api: Any) -> None:
        generation = len(apis)
        apis.append(api)
        api.register_flag("mode", type="string", default=f"default {generation}")
        api.register_flag("limit", type="string", default="none")
        for name in ("quiet", "loud", f"new{generation}"):
            api.register_tool(tool(name))
        watch = [later(note)]
        on(session_shutdown=watch, session_start=watch, resources_discover=watch)(api)
        api.events.on("ping", lambda data: data.append(generation))

    edited = tmp_path / "agent/extensions/edited.py"
    line = "api.register_flag('size', type='string', default='{}')"
    steps = {"reload_settings": lambda: ledger.append(1), "reset_providers": lambda: ledger.append(2)}
    shelf = session.ResourceLoader(cwd=tmp_path, agent_dir=tmp_path / "agent", home=tmp_path, inline=[setup])
    for host in (object(), None):
        write_noting(edited, line.format("old"))
        (await shelf.reload()).runtime.flag_values["limit"] = "9"
        serving = session.AgentSession(session.AgentParts(**steps), shelf)
        await serving.bind(host)
        apis[-1].set_active_tools([name for name in apis[-1].get_active_tools() if name != "loud"])
        for size in ("new", "odd", "now"):  # edits of equal length, within the same second
            ledger.clear()
            write_noting(edited, line.format(size))
            await serving.reload()
            *_, old, api = apis
            starts = ["session_start reload 9", "resources_discover reload 9"] if host else []
            assert ledger == ["session_shutdown reload 9", 1, 2, "import edited", "setup edited", *starts]
            assert serving.runner.flags()["size"].default == size
            assert (api.get_flag("mode"), api.get_flag("limit")) == (f"default {len(apis) - 1}", "9")
            assert sorted(api.get_active_tools()) == [f"new{len(apis) - 1}", "quiet"]
            refusal(old.get_active_tools)
            heard: list[int] = []
            api.events.emit("ping", heard)
            assert heard == [len(apis) - 1]
