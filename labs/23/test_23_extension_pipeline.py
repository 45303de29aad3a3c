"""Chapter 23: from a path to running behaviour, resolved, imported, bound, and only after trust."""

import asyncio
import os
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pi_course.extensions import api as api_module
from pi_course.extensions import loader, packages
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
    return [Path(path).relative_to(root).as_posix() for path in paths]


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
    cwd, agent_dir = tmp_path / "cwd", tmp_path / "agent"
    files = ["z/cli.py", "a/cli.py", "set/p2.py", "set/p1.py", "set/u.py"]
    cli_z, cli_a, p2, p1, u = [write(tmp_path / name) for name in files]
    own, shared = [write(tmp_path / name / "main.py") for name in ("own", "shared")]
    for main in (own, shared):
        manifest(Path(main).parent, "main.py")
    project_auto = write(cwd / ".pi" / "extensions" / "auto.py")
    user_auto = write(agent_dir / "extensions" / "auto.py")
    (agent_dir / "extensions" / "alias.py").symlink_to(project_auto)
    alias = str(tmp_path / "set" / "z-link.py")
    Path(alias).symlink_to(u)
    project = packages.ExtensionSettings([p2, p1, alias, "!*z-link.py"], [str(tmp_path / "own")])
    user = packages.ExtensionSettings([u], [str(tmp_path / "shared"), str(tmp_path / "own")])
    scopes, cli = {"project": project, "user": user}, [cli_z, "../a/cli.py", p1]
    options: Any = {"trusted": True, "entry_points": lambda group: []}
    resolved = packages.resolve_extensions(cwd=cwd, agent_dir=agent_dir, cli=cli, **scopes, **options)
    assert resolved.errors == []
    order = [cli_z, cli_a, p1, p2, alias, project_auto, user_auto, own, shared]
    assert [each.path for each in resolved.paths] == order
    assert [each.path for each in resolved.paths if not each.enabled] == [alias]
    origins = [(each.metadata.scope, each.metadata.origin) for each in resolved.paths]
    top = [("temporary", "top-level")] * 3 + [("project", "top-level")] * 3 + [("user", "top-level")]
    assert origins == [*top, ("project", "package"), ("user", "package")]


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
    monkeypatch.delitem(sys.modules, "installed23")
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
