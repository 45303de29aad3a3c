"""Chapter 23: from a path to running behaviour, resolved, imported, bound, and only after trust."""

import asyncio
import os
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import pytest
from pi_course.extensions import api as api_module
from pi_course.extensions import loader, packages
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition

T = TypeVar("T")


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


async def within(awaitable: Awaitable[T], seconds: float = 10.0) -> T:
    """What the awaitable gives, or a failure if it is not there after that time."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        pytest.fail(f"still waiting after {seconds} s")
    return task.result()


async def load_inline(*factories: Callable[[Any], Any], runtime: Any = None) -> Any:
    """Load factories as a host brings them; what is not written yet comes out, and is no load error."""
    missing: list[NotImplementedError] = []

    def guarded(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def setup(api: Any) -> None:
            try:
                answer = factory(api)
                await answer if isinstance(answer, Awaitable) else None
            except NotImplementedError as error:
                missing.append(error)
                raise

        return setup

    inline = [guarded(factory) for factory in factories]
    result = await within(loader.load_extensions([], cwd=os.curdir, runtime=runtime, inline=inline))
    if missing:
        raise missing[0]
    return result


# --- Lab 23.1 --------------------------------------------------------------------------------------------


def under(root: Path, paths: list[str]) -> list[str]:
    """Paths as they read below a root."""
    return [Path(path).relative_to(root).as_posix() for path in paths]


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_the_two_scans_look_one_level_deep_and_differ_at_the_root(tmp_path: Path) -> None:
    """Both scans look one level deep; only production's minds the root's own entry and ignore files."""
    scans = (packages.discover_extensions_in_dir, packages.collect_auto_extensions)
    root = tmp_path / "extensions"
    for name in ("one.py", "skipped.py", "notes.txt", "stub.pyi", ".hidden.py", "deep/er/index.py"):
        write(root / name)
    for folder in ("__pycache__", "node_modules", ".dot", "three", "pack", "empty", "odd"):
        write(root / folder / "index.py")
    for folder in ("three", "four"):
        write(root / folder / "__init__.py")
    write(root / "pack" / "main.txt")
    write(root / "pack" / "pyproject.toml", '[tool.pi]\nextensions = ["missing.py", "main.txt"]')
    write(root / "empty" / "pyproject.toml", '[tool.pi]\nextensions = ["missing.py"]')
    write(root / "odd" / "pyproject.toml", '[tool.pi]\nextensions = ["index.py", 1]')
    write(root / "odd" / "__init__.py")
    write(root / ".gitignore", "skipped.py\n")
    entries = ["empty/index.py", "four/__init__.py", "odd/index.py", "one.py", "pack/main.txt"]
    assert [under(root, scan(root)) for scan in scans] == [
        [*entries, "skipped.py", "three/index.py"],
        [*entries, "three/index.py"],
    ]

    # The root's own index, and before it its own manifest, is the whole answer of the production scan.
    write(root / "index.py")
    assert "three/index.py" in under(root, scans[0](root))
    assert under(root, scans[1](root)) == ["index.py"]
    write(root / "pyproject.toml", '[tool.pi]\nextensions = ["three/index.py", "one.py"]')
    assert "four/__init__.py" in under(root, scans[0](root))
    assert under(root, scans[1](root)) == ["three/index.py", "one.py"]
    assert [scan(tmp_path / "nowhere") for scan in scans] == [[], []]


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_ignore_rules_links_and_manifests_keep_their_bounds(tmp_path: Path) -> None:
    """Ignore files are one list of rules, links count as what they lead to, a manifest never leads out."""
    root, outside = tmp_path / "extensions", write(tmp_path / "outside" / "index.py")
    names = ["Z.py", "a.py", "b.py", "c.py", "é.py", "\U0001f600.py", "\uff5e.py", "generated/index.py"]
    for name in names:
        write(root / name)
    write(root / ".gitignore", "[bc].py\ngenerated/\n!b.py\n")
    write(root / ".ignore", "a.py\n!c.py\n")
    write(root / ".fdignore", "b.py\n!a.py\n")
    write(root / "sub" / ".gitignore", "index.py\n")
    write(root / "sub" / "index.py")
    (root / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    (root / "link.py").symlink_to(outside)
    (root / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (root / "loop.py").symlink_to("loop.py")
    expected = ["Z.py", "a.py", "c.py", "link.py", "linked/index.py", "sub/index.py"]
    for _ in range(5):

        def shuffled(path: Any) -> Any:
            with os.scandir(path) as entries:
                return random.sample(listing := list(entries), len(listing))

        found = packages.collect_auto_extensions(root, scandir=shuffled)
        assert under(root, found) == [*expected, "é.py", "\uff5e.py", "\U0001f600.py"]  # bytes, as in UTF-8
        assert found == packages.collect_auto_extensions(root)

    pack = tmp_path / "pack"
    write(pack / "index.py")
    (pack / "link.py").symlink_to(outside)
    entries = ["../outside/index.py", str(outside), "link.py", "../pack-old/x.py"]
    write(tmp_path / "pack-old" / "x.py")
    write(pack / "pyproject.toml", f"[tool.pi]\nextensions = {[*entries]!r}")
    assert under(pack, packages.collect_auto_extensions(pack)) == ["index.py"]


def shown(resolved: Any, root: Path) -> list[tuple[str, bool]]:
    """Resolved paths below a root, and whether they are enabled."""
    return [(each.path.removeprefix(f"{root}/"), each.enabled) for each in resolved.paths]


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_the_best_rank_comes_first_and_wins_for_each_canonical_path(tmp_path: Path) -> None:
    """Command line, project, user, packages; of aliases the best-ranked stays, even a disabled one."""
    cwd, agent_dir = tmp_path / "cwd", tmp_path / "agent"
    for name in ("z/cli.py", "a/cli.py", "set/p2.py", "set/p1.py", "set/u.py"):
        write(tmp_path / name)
    auto = write(cwd / ".pi" / "extensions" / "auto.py")
    write(agent_dir / "extensions" / "auto.py")
    for name in ("own", "shared"):
        write(tmp_path / name / "pyproject.toml", '[tool.pi]\nextensions = ["main.py"]')
        write(tmp_path / name / "main.py")
    (agent_dir / "extensions" / "alias.py").symlink_to(auto)
    (tmp_path / "set" / "z-link.py").symlink_to(tmp_path / "set" / "u.py")
    at = {name: str(tmp_path / name) for name in ("set/p2.py", "set/p1.py", "set/u.py", "set/z-link.py")}
    project = packages.ExtensionSettings(
        [at["set/p2.py"], at["set/p1.py"], at["set/z-link.py"], "!z-link.py"]
    )
    user = packages.ExtensionSettings([at["set/u.py"]], [str(tmp_path / "shared"), str(tmp_path / "own")])
    project.packages.append(str(tmp_path / "own"))
    resolved = packages.resolve_extensions(
        cwd=cwd,
        agent_dir=agent_dir,
        project=project,
        user=user,
        cli=[str(tmp_path / "z" / "cli.py"), "../a/cli.py", str(tmp_path / "set" / "p1.py")],
        trusted=True,
        entry_points=lambda group: [],
    )
    assert resolved.errors == []
    assert shown(resolved, tmp_path) == [
        ("z/cli.py", True),
        ("a/cli.py", True),
        ("set/p1.py", True),
        ("set/p2.py", True),
        ("set/z-link.py", False),
        ("cwd/.pi/extensions/auto.py", True),
        ("agent/extensions/auto.py", True),
        ("own/main.py", True),
        ("shared/main.py", True),
    ]
    scopes = [(each.metadata.scope, each.metadata.origin) for each in resolved.paths]
    top = "top-level"
    assert scopes[:7] == [*[("temporary", top)] * 3, *[("project", top)] * 3, ("user", top)]
    assert scopes[7:] == [("project", "package"), ("user", "package")]


def install(site: Path, name: str, target: str) -> None:
    """Put a distribution there that offers an extension, as an installer would."""
    write(
        site / f"{target}-1.0.dist-info" / "METADATA",
        f"Metadata-Version: 2.1\nName: {target}\nVersion: 1.0\n",
    )
    write(site / f"{target}-1.0.dist-info" / "entry_points.txt", f"[pi.extensions]\n{name} = {target}\n")


@pytest.mark.lab23
@pytest.mark.lab23_1
def test_switches_leave_out_what_they_name_and_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patterns, no_extensions and missing trust decide what is listed, and names of entry points suffice."""
    cwd, agent_dir = tmp_path / "cwd", tmp_path / "agent"
    own = [
        write(cwd / name, "raise SystemExit") for name in (".pi/extensions/own.py", "set.py", "pack/index.py")
    ]
    at = {name: write(agent_dir / "extensions" / f"{name}.py", "raise SystemExit") for name in "abcd"}
    write(tmp_path / "site" / "offered23.py", "raise SystemExit")
    install(tmp_path / "site", "offer", "offered23")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    patterns = [f"-{at['d']}", f"+{at['d']}", f"+{at['b']}", "!*.py", f"+{at['a']}"]
    project = packages.ExtensionSettings([own[1]], [str(cwd / "pack")])

    def resolve(**options: Any) -> list[tuple[str, bool]]:
        user = packages.ExtensionSettings([str(tmp_path / "missing.py"), *patterns], [])
        scopes = {"cwd": cwd, "agent_dir": agent_dir, "project": project, "user": user}
        resolved = packages.resolve_extensions(**scopes | options)
        errors.extend((each.path, each.error) for each in resolved.errors)
        return [(each.path, each.enabled) for each in resolved.paths]

    errors: list[tuple[str, str]] = []
    users = [(at["a"], True), (at["b"], True), (at["c"], False), (at["d"], False)]
    offered = ("<entry-point:offer>", True)
    owned = [(own[1], True), (own[0], True), *users, (own[2], True), offered]
    assert resolve(trusted=True) == owned
    assert [each for each in resolve() if each[0] != offered[0]] == users
    assert errors == []
    missing = str(cwd / "no" / "where.py")
    assert resolve(trusted=True, cli=["no/where.py", at["c"]], no_extensions=True) == [(at["c"], True)]
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
    sources = {
        "z": setup.format("z", "pass"),
        "broken": "raise ValueError('no import today')",
        "exits": "import sys\nsys.exit(3)",
        "bare": "setup = 'not callable'",
        "late": setup.format("late", "sys.exit('no factory today')"),
        "a": setup.format("a", "pass"),
    }
    paths = [write(tmp_path / f"{name}.py", source) for name, source in sources.items()]
    result = await within(loader.load_extensions([*paths, "gone.py"], cwd=tmp_path))
    assert [each.path for each in result.extensions] == [paths[0], paths[5]]
    ran = ["import z", "setup z", "done z", "import late", "setup late", "import a", "setup a", "done a"]
    assert ledger == ran
    assert [each.path for each in result.errors] == [*paths[1:5], "gone.py"]
    broken, exits, bare, late, gone = [each.error for each in result.errors]
    assert bare == f"Extension does not export a valid factory function: {paths[3]}"
    for text in (broken, exits, late, gone):
        assert text.startswith("Failed to load extension: ")
    assert ("no import today" in broken, "no factory today" in late) == (True, True)

    # Cancellation and Ctrl-C are no failures of an extension: they end the load.
    for ending in (asyncio.CancelledError, KeyboardInterrupt):

        def import_module(path: str, ending: type[BaseException] = ending) -> Any:
            raise ending

        with pytest.raises(ending):
            await loader.load_extensions(paths, cwd=tmp_path, import_module=import_module)


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

    for name in (main, other, main):
        await load(name)
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
    """Two cached loads are one import and two runs; what is cleared, or of another cwd, or failed, is not kept."""
    path = write(tmp_path / "extension.py")
    imports: list[str] = []
    failures = [ValueError("no import yet")]
    gate = asyncio.Event()
    gate.set()

    async def import_module(name: str) -> Any:
        imports.append(name)
        await within(gate.wait())
        if failures:
            raise failures.pop()
        return SimpleNamespace(setup=apis.append)

    apis: list[Any] = []
    cached = loader.ExtensionLoader()

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
    source = "from ledger23 import note\nnote('offered')\ndef setup(api):\n    note(type(api))\n"
    write(tmp_path / "site" / "installed23.py", source)
    install(tmp_path / "site", "offer", "installed23")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    write(tmp_path / "real" / "file.py", "def setup(api): pass")
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "file.py")
    settings = packages.ExtensionSettings([str(tmp_path / "link.py"), "!link.py"], [])
    none = packages.ExtensionSettings([], [])
    resolved = packages.resolve_extensions(
        cwd=tmp_path, agent_dir=tmp_path, project=none, user=settings, trusted=True
    )
    assert ledger == []
    inline = [ledger.append, loader.InlineExtension(ledger.append, "named"), ledger.append]
    paths = [*resolved.paths, "link.py"]
    result = await within(loader.load_extensions(paths, cwd=tmp_path, inline=inline))
    monkeypatch.delitem(sys.modules, "installed23")
    assert result.errors == []
    assert ledger[0] == "offered"
    labels = ["<entry-point:offer>", "link.py", "<inline:1>", "<inline:named>", "<inline:3>"]
    assert [each.path for each in result.extensions] == labels
    assert len({*map(id, result.extensions)}) == 5
    sources = [each.source_info for each in result.extensions]
    assert [each.source for each in sources] == ["entry-point", "local", "inline", "inline", "inline"]
    assert {each.scope for each in sources} == {"temporary"}
    assert result.extensions[1].resolved_path == os.path.realpath(tmp_path / "real" / "file.py")
    assert sources[1].base_dir == os.path.realpath(tmp_path / "real")


# --- Lab 23.3 --------------------------------------------------------------------------------------------


def refusal(action: Callable[[], object]) -> str:
    """The text of the ExtensionError that an action must raise."""
    try:
        action()
    except ExtensionError as error:
        return str(error)
    pytest.fail("nothing was refused")


@pytest.mark.lab23
@pytest.mark.lab23_3
async def test_registrations_go_into_the_extension_s_own_maps(tmp_path: Path) -> None:
    """The same name again overwrites in place, handlers append; of a flag the first default stays."""

    def one(api: Any) -> None:
        for name in ("read", "write"):
            api.register_tool(tool(name))
        api.register_tool(again)
        for handler in (print, repr, print):
            api.on("tool_call", handler)
        api.register_command("review", print, description="first")
        api.register_command("review", repr, description="second")
        api.register_shortcut("ctrl+r", print)
        api.register_message_renderer("note", print)
        api.register_entry_renderer("note", repr)
        for default in ("first", "second"):
            api.register_flag("mode", type="string", default=default, description=default)
        for default in (None, False, True):
            api.register_flag("fast", type="boolean", default=default)
        seen.append((api.get_flag("mode"), api.get_flag("fast"), api.get_flag("set")))

    def two(api: Any) -> None:
        api.register_flag("mode", type="string", default="other")
        api.register_flag("set", type="string", default="default")
        seen.append((api.get_flag("mode"), api.get_flag("fast"), api.get_flag("set")))

    again, seen = tool("read"), list[Any]()
    runtime = api_module.ExtensionRuntime()
    runtime.flag_values["set"] = "by the host"
    result = await load_inline(one, two, runtime=runtime)
    first, second = result.extensions
    assert [(name, each.definition.name) for name, each in first.tools.items()] == [
        ("read", "read"),
        ("write", "write"),
    ]
    assert first.tools["read"].definition is again
    assert first.handlers == {"tool_call": [print, repr, print]}
    assert (first.commands["review"].handler, first.commands["review"].description) == (repr, "second")
    assert (list(first.shortcuts), first.message_renderers, first.entry_renderers) == (
        ["ctrl+r"],
        {"note": print},
        {"note": repr},
    )
    assert (first.flags["mode"].default, first.flags["mode"].description) == ("second", "second")
    assert (second.tools, second.handlers, list(second.flags)) == ({}, {}, ["mode", "set"])
    assert seen == [("first", False, None), ("first", None, "by the host")]
    assert runtime.flag_values == {"mode": "first", "fast": False, "set": "by the host"}


@pytest.mark.lab23
@pytest.mark.lab23_3
async def test_actions_wait_for_the_core_and_the_rest_works_at_once() -> None:
    """Actions raise until the core is bound, providers queue till then, tools, exec and the bus work at once."""

    async def early(api: Any) -> None:
        api.register_tool(tool("early"))
        api.events.on("news", heard.append)
        api.events.emit("news", "at once")
        for name in ("good", "bad", "fine"):
            api.register_provider(name, {"from": "early"})
        heard.append((await api.exec(sys.executable, ["-c", "print('ran')"])).stdout.strip())
        actions = (api.get_active_tools, api.abort, api.compact, lambda: api.send_message("x"))
        more = (
            lambda: api.set_active_tools([]),
            lambda: api.set_model(None),
            lambda: api.append_entry("k", 1),
        )
        heard.extend({refusal(action) for action in (*actions, *more)})
        kept.append(api)

    heard, kept, done = list[Any](), list[Any](), list[Any]()

    def register_provider(name: str, config: Any) -> None:
        if name == "bad":
            raise ValueError("no such provider")
        done.append((name, config["from"]))

    result = await load_inline(early)
    initial = "Extension runtime not initialized. Action methods cannot be called during extension loading."
    assert heard == ["at once", "ran", initial]
    assert done == []
    core = SimpleNamespace(
        send_message=lambda text: done.append(text),
        get_active_tools=lambda: ["early"],
        refresh_tools=lambda: done.append("refresh"),
        register_provider=register_provider,
    )
    faults: list[Any] = []
    result.runtime.bind(core, faults.append)
    assert done == [("good", "early"), ("fine", "early")]
    assert len(faults) == 1
    assert "no such provider" in str(faults[0])
    kept[0].send_message("hello")
    kept[0].register_tool(tool("late"))
    kept[0].register_provider("next", {"from": "late"})
    assert done[2:] == ["hello", "refresh", ("next", "late")]
    assert kept[0].get_active_tools() == ["early"]
    assert list(result.extensions[0].tools) == ["early", "late"]


@pytest.mark.lab23
@pytest.mark.lab23_3
async def test_a_failed_factory_leaves_nothing_in_what_all_share() -> None:
    """Flag defaults, queued providers and listeners of a failed factory vanish, and nobody takes others'."""

    def provider(name: str, owner: str) -> Callable[[Any], None]:
        return lambda api: api.register_provider(name, {"from": owner})

    def failing(api: Any) -> None:
        api.register_flag("mode", type="string", default="failing")
        api.register_provider("failing", {"from": "failing"})
        api.events.on("news", lambda data: heard.append(("failing", data)))
        api.unregister_provider("shared")
        kept.append(api)
        raise ValueError("too late")

    def lasting(api: Any) -> None:
        assert api.get_flag("mode") is None
        api.register_flag("mode", type="string", default="lasting")
        for flag_type, default in (("boolean", "yes"), ("string", True), ("boolean", 1), ("number", 1)):
            refusal(lambda: api.register_flag("wrong", type=flag_type, default=default))
        api.events.on("news", lambda data: heard.append(("lasting", data)))
        for name in ("own", "shared"):
            api.register_provider(name, {"from": "lasting"})
            api.unregister_provider(name)
        api.events.emit("news", 1)

    heard, kept, registered = list[Any](), list[Any](), list[Any]()
    result = await load_inline(provider("shared", "first"), failing, lasting)
    assert [each.path for each in result.errors] == ["<inline:2>"]
    assert [each.path for each in result.extensions] == ["<inline:1>", "<inline:3>"]
    assert result.runtime.flag_values == {"mode": "lasting"}
    assert heard == [("lasting", 1)]
    result.runtime.bind(SimpleNamespace(register_provider=lambda *each: registered.append(each)))
    assert registered == [("shared", {"from": "first"})]
    refusal(lambda: kept[0].register_tool(tool("late")))
    refusal(lambda: kept[0].events.emit("news", 2))
    assert heard == [("lasting", 1)]


# --- Lab 23.4 --------------------------------------------------------------------------------------------
