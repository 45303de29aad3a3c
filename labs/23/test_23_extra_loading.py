"""Chapter 23, beyond the labs: paths, modules and factories that are odd, broken or ill-meant."""

import asyncio
import errno
import os
import py_compile
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pi_course.extensions import api as api_module
from pi_course.extensions import loader, packages, sources
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition

pytestmark = pytest.mark.extra23

POSIX = pytest.mark.skipif(os.name == "nt", reason="pipes, permissions and signals of POSIX")
CLOSED: set[str] = set()
SETUP = "def setup(api):\n    pass\n"


def write(path: Path, text: str = "") -> str:
    """Write a file, folders and all, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def settings(*extensions: str, packages_: Sequence[str] = ()) -> Any:
    """One scope's settings."""
    return packages.ExtensionSettings(list(extensions), list(packages_))


def resolve(root: Path, **options: Any) -> Any:
    """Resolve with a cwd and an agent_dir under `root`, without settings and distributions of its own."""
    defaults = {"project": settings(), "user": settings(), "entry_points": lambda group: []}
    return packages.resolve_extensions(cwd=root / "cwd", agent_dir=root / "agent", **defaults | options)


def states(resolved: Any) -> list[tuple[str, bool]]:
    """Names of the files and whether they are enabled."""
    return [(Path(each.path).name, each.enabled) for each in resolved.paths]


async def load(*paths: Any, cwd: Any = os.curdir, **options: Any) -> Any:
    """Load, within a bounded time."""
    return await asyncio.wait_for(loader.load_extensions(paths, cwd=cwd, **options), 20)


async def load_inline(*factories: Any, runtime: Any = None) -> Any:
    """Load factories that a host brings."""
    return await load(inline=factories, runtime=runtime)


def tool(name: str) -> ToolDefinition:
    """A tool that does nothing."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> str:
        return "done"

    return ToolDefinition(name, f"the tool {name}", {"type": "object"}, execute)


class ImportSpy:
    """Stands first at the interpreter's own door and notes every module that is looked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        self.names.append(name)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> ImportSpy:
    """Notes which modules are looked for; those loaded before are no news."""
    spy = ImportSpy()
    monkeypatch.setattr(sys, "meta_path", [spy, *sys.meta_path])
    return spy


# --- scans -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "tool = 1",
        "[tool]\npi = []",
        "[tool.pi]\nextensions = 'main.py'",
        "[tool.pi]\nextensions = {a = 'main.py'}",
        "[tool.pi]\nextensions = [['main.py']]",
        "[tool.pi]\nextensions = ['main.py', 1]",
        "[tool.pi]\nextensions = []",
        "[tool.pi]\nextensions = ['a\\u0000b']",
        "[tool.pi]\nextensions = ['']\nbad",
        "extensions = ['main.py']",
        "\udcff",
        "a = " + "[" * 5000,
    ],
)
def test_a_manifest_that_says_nothing_useful_counts_as_absent(tmp_path: Path, text: str) -> None:
    """Anything but a list of strings, and what is no TOML at all, falls back to the index."""
    write(tmp_path / "main.py")
    write(tmp_path / "index.py")
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8", errors="surrogateescape")
    assert packages.collect_auto_extensions(tmp_path) == [str(tmp_path / "index.py")]


def test_a_linked_package_may_declare_what_is_inside(tmp_path: Path) -> None:
    """Containment is of real paths, so a package that is reached by a link is whole."""
    write(tmp_path / "real" / "main.py")
    write(tmp_path / "real" / "pyproject.toml", "[tool.pi]\nextensions = ['./lib/../main.py', 'main.py']")
    root = tmp_path / "extensions"
    root.mkdir()
    (root / "pack").symlink_to(tmp_path / "real", target_is_directory=True)
    assert packages.collect_auto_extensions(root) == [str(root / "pack" / "main.py")] * 2


def test_bad_ignore_rules_are_passed_over_and_good_ones_hold(tmp_path: Path) -> None:
    """A rule that can't be read takes none of its neighbours with it; comments and line ends are git's."""
    for name in ("a.py", "b.py", "c.py", "#d.py", "sub/index.py", "sub2/index.py"):
        write(tmp_path / name)
    rules = "\ufeff!\n[z-a].py\n# *.py\na.py\r\n/b.py\n\\#d.py\nsub/\nc\n"
    (tmp_path / ".gitignore").write_bytes(rules.encode())
    (tmp_path / ".ignore").mkdir()
    found = packages.collect_auto_extensions(tmp_path)
    assert [Path(each).relative_to(tmp_path).as_posix() for each in found] == ["c.py", "sub2/index.py"]


@POSIX
def test_pipes_are_neither_extensions_nor_manifests(tmp_path: Path) -> None:
    """A scan reads regular files only, as a pipe would never end."""
    write(tmp_path / "one.py")
    for name in ("pipe.py", "pyproject.toml", ".gitignore", ".ignore"):
        os.mkfifo(tmp_path / name)
    assert packages.collect_auto_extensions(tmp_path) == [str(tmp_path / "one.py")]
    assert packages.discover_extensions_in_dir(tmp_path) == [str(tmp_path / "one.py")]


def refused(look: Any) -> Any:
    """The same function, refused below what is in CLOSED."""

    def looked(path: Any, *more: Any, **options: Any) -> Any:
        if not isinstance(path, int) and os.path.dirname(os.fsdecode(path)) in CLOSED:  # noqa: PTH120
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return look(path, *more, **options)

    return looked


def refuse_closed(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what is in CLOSED, as permissions do for everybody but root."""
    if CLOSED and event in ("open", "os.scandir", "os.listdir") and not isinstance(arguments[0], int):
        path = os.fsdecode(arguments[0] or ".")
        if path in CLOSED:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


@pytest.fixture(scope="module")
def even_for_root() -> None:
    """Have CLOSED heeded; the hook stays as long as the process, idle while CLOSED is empty."""
    sys.addaudithook(refuse_closed)


@POSIX
@pytest.mark.usefixtures("even_for_root")
def test_what_may_not_be_read_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a manifest and an ignore file without permission end nobody else's discovery."""
    write(tmp_path / "agent" / "extensions" / "closed" / "index.py")
    write(tmp_path / "agent" / "extensions" / "open.py")
    write(tmp_path / "agent" / "extensions" / ".gitignore", "open.py")
    closed = [tmp_path / "agent" / "extensions" / name for name in ("closed", ".gitignore")]
    for path in closed:
        path.chmod(0)
        CLOSED.add(str(path))
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, refused(getattr(os, name)))
    try:
        assert states(resolve(tmp_path)) == [("open.py", True)]
        assert packages.collect_auto_extensions(closed[0]) == []
    finally:
        CLOSED.clear()
        for path in closed:
            path.chmod(0o700)


def test_loops_of_links_and_files_in_place_of_folders_are_empty(tmp_path: Path) -> None:
    """Links that lead nowhere, in a ring or to a file give no entries and no error."""
    (tmp_path / "ring").symlink_to(tmp_path / "ring2")
    (tmp_path / "ring2").symlink_to(tmp_path / "ring")
    file = write(tmp_path / "file.py")
    for root in (tmp_path / "ring", Path(file), tmp_path / ("x" * 300), tmp_path / "nul\0"):
        assert packages.collect_auto_extensions(root) == []
        assert packages.discover_extensions_in_dir(root) == []
    assert sources.canonical_path(tmp_path / "ring") == str(tmp_path / "ring")
    assert states(resolve(tmp_path, user=settings(str(tmp_path / "ring")))) == []
    assert len(resolve(tmp_path, cli=[str(tmp_path / "ring")]).errors) == 1


@POSIX
def test_names_that_are_no_text_are_sorted_by_their_bytes(tmp_path: Path) -> None:
    """Order is that of the file system's bytes, where text would have it otherwise."""
    names = [b"a.py", "\U0001f600.py".encode(), b"\xff.py"]
    try:
        for name in names:
            Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).touch()  # noqa: PTH118 - bytes
    except OSError:
        pytest.skip("this file system takes text only")
    found = packages.collect_auto_extensions(tmp_path)
    assert [os.fsencode(Path(each).name) for each in found] == names


def test_a_scan_that_breaks_off_is_empty(tmp_path: Path) -> None:
    """An error in the middle of a listing gives nothing rather than half of it."""
    write(tmp_path / "one.py")

    def broken(path: str) -> Any:
        yield from os.scandir(path)
        raise OSError("the disk is gone")

    assert packages.collect_auto_extensions(tmp_path, scandir=broken) == []


# --- resolution ------------------------------------------------------------------------------------------


def test_relative_paths_belong_to_the_scope_s_base(tmp_path: Path) -> None:
    """Settings are relative to `.pi` and to the agent's directory, command line paths to cwd."""
    for name in ("cwd/.pi/p.py", "agent/u.py", "cwd/c.py"):
        write(tmp_path / name)
    resolved = resolve(
        tmp_path, project=settings("p.py"), user=settings("u.py", ""), cli=["c.py"], trusted=True
    )
    assert [each.metadata.source for each in resolved.paths] == ["cli", "local", "local"]
    assert [each.metadata.base_dir for each in resolved.paths] == [
        str(tmp_path / "cwd"),
        str(tmp_path / "cwd" / ".pi"),
        str(tmp_path / "agent"),
    ]


def test_folders_stand_for_their_entries(tmp_path: Path) -> None:
    """A folder is scanned; an empty one on the command line stays, to be told of."""
    for name in ("set/a.py", "set/b.py", "cli/index.py", "cli/other.py"):
        write(tmp_path / name)
    (tmp_path / "hollow").mkdir()
    cli = [str(tmp_path / "cli"), str(tmp_path / "hollow")]
    resolved = resolve(tmp_path, cli=cli, user=settings(str(tmp_path / "set"), str(tmp_path / "hollow")))
    assert [name for name, _ in states(resolved)] == ["index.py", "hollow", "a.py", "b.py"]


def test_packages_offer_manifest_index_extensions_folder_or_files(tmp_path: Path) -> None:
    """A package folder is read by the first of its four forms, under the name that the settings give it."""
    write(tmp_path / "declared" / "pyproject.toml", "[tool.pi]\nextensions = ['m.py']")
    for name in ("declared/m.py", "declared/index.py", "indexed/index.py", "indexed/extensions/x.py"):
        write(tmp_path / name)
    for name in ("nested/extensions/n.py", "nested/skills.py", "flat/f.py", "single.py"):
        write(tmp_path / name)
    names = ["declared", "indexed", "nested", "flat", "single.py", "missing"]
    resolved = resolve(tmp_path, user=settings(packages_=[f"../{name}" for name in names]))
    assert [name for name, _ in states(resolved)] == ["m.py", "index.py", "n.py", "f.py", "single.py"]
    assert [each.metadata.source for each in resolved.paths] == [f"../{name}" for name in names[:5]]


def test_patterns_judge_their_own_list_and_scope(tmp_path: Path) -> None:
    """A project's patterns don't reach the user's paths, nor those of `extensions` packages."""
    for name in ("cwd/.pi/extensions/a.py", "agent/extensions/a.py", "pack/a.py", "pack/b.py"):
        write(tmp_path / name)
    pack = str(tmp_path / "pack")
    resolved = resolve(
        tmp_path,
        project=settings("!*"),
        user=settings(packages_=[pack, "!b*", "+b.py", "-./b.py"]),
        trusted=True,
    )
    assert states(resolved) == [("a.py", False), ("a.py", True), ("a.py", True), ("b.py", False)]


@pytest.mark.parametrize(
    ("patterns", "enabled"),
    [
        (["!extensions/*.py"], False),
        (["!EXTENSIONS/*"], True),
        (["!a.py"], False),
        (["!*/agent/extensions/a.py"], False),
        (["!b.py"], True),
        (["-extensions/a.py"], False),
        (["-a.py"], True),
        (["+extensions/a.py", "!a.py"], True),
        (["-extensions/a.py", "+extensions/a.py", "!b.py"], False),
        (["!"], True),
    ],
)
def test_patterns_mean_relative_path_name_or_whole_path(
    tmp_path: Path, patterns: list[str], enabled: bool
) -> None:
    """A glob may be of the path, relative or whole, or of the name; `+` and `-` name the path itself."""
    write(tmp_path / "agent" / "extensions" / "a.py")
    assert states(resolve(tmp_path, user=settings(*patterns))) == [("a.py", enabled)]


def test_only_true_is_trust_and_the_untrusted_project_isn_t_looked_at(tmp_path: Path) -> None:
    """Nothing merely truthy is trust, and without it no folder of the project is listed."""
    write(tmp_path / "cwd" / ".pi" / "extensions" / "a.py")
    listed: list[str] = []

    def scandir(path: str) -> Any:
        listed.append(path)
        return os.scandir(path)

    trust: Any = "yes"
    assert states(resolve(tmp_path, trusted=trust, scandir=scandir)) == []
    assert [path for path in listed if path.startswith(str(tmp_path / "cwd"))] == []


def test_entry_points_come_last_by_name_and_can_be_switched_off(tmp_path: Path) -> None:
    """Installed extensions are packages of the user's scope; without trust they are listed as disabled."""
    index = [EntryPoint(name, "nowhere23", packages.ENTRY_POINT_GROUP) for name in ("zoo", "ant", "ant")]

    def offered(**options: Any) -> list[tuple[str, bool]]:
        return [
            (each.path, each.enabled)
            for each in resolve(tmp_path, entry_points=lambda group: index, **options).paths
        ]

    assert offered(trusted=True) == [("<entry-point:ant>", True), ("<entry-point:zoo>", True)]
    assert offered() == [("<entry-point:ant>", False), ("<entry-point:zoo>", False)]
    for pattern in ("-<entry-point:ant>", "!<entry-point:a*>"):
        assert offered(trusted=True, user=settings(packages_=[pattern]))[0][1] is False
    assert offered(trusted=True, no_extensions=True) == []


def test_a_damaged_index_of_distributions_is_an_error_and_no_end(tmp_path: Path) -> None:
    """What can't be read of the environment is told, and the files are there all the same."""

    def broken(**options: Any) -> Any:
        raise ValueError("bad metadata")

    write(tmp_path / "agent" / "extensions" / "a.py")
    resolved = resolve(tmp_path, entry_points=broken)
    assert states(resolved) == [("a.py", True)]
    assert ["bad metadata" in each.error for each in resolved.errors] == [True]


async def test_nothing_is_looked_for_before_it_is_loaded(tmp_path: Path, spy: ImportSpy) -> None:
    """Resolving files, packages and distributions asks the interpreter for no module; loading does."""
    write(tmp_path / "cwd" / ".pi" / "extensions" / "own.py", "import spied23_own\n" + SETUP)
    write(tmp_path / "pack" / "index.py", "import spied23_pack\n" + SETUP)
    index = [EntryPoint("offer", "spied23_installed", packages.ENTRY_POINT_GROUP)]
    given = {"entry_points": lambda group: index, "user": settings(packages_=[str(tmp_path / "pack")])}
    untrusted, trusted = resolve(tmp_path, **given), resolve(tmp_path, trusted=True, **given)
    assert [name for name in spy.names if "spied23" in name or "_pi_extension" in name] == []

    def import_module(path: str) -> Any:
        return loader.import_extension(path, entry_points=lambda group: index)

    def asked() -> set[str]:
        return {name for name in spy.names if name.startswith("spied23")}

    await load(*untrusted.paths, import_module=import_module)
    assert asked() == {"spied23_pack"}
    result = await load(*trusted.paths, import_module=import_module)
    assert asked() == {"spied23_pack", "spied23_own", "spied23_installed"}
    assert len(result.errors) == 3


def test_a_thousand_extensions_keep_their_order(tmp_path: Path) -> None:
    """Many files, each named twice, give one entry each, by name."""
    names = [f"e{number:04}.py" for number in range(1000)]
    for name in names:
        write(tmp_path / "agent" / "extensions" / name)
    resolved = resolve(tmp_path, user=settings("extensions", "extensions"))
    assert [name for name, _ in states(resolved)] == names


# --- import ----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What extensions note: `from notes23 import note`."""
    found: list[Any] = []
    monkeypatch.setitem(sys.modules, "notes23", SimpleNamespace(note=found.append))
    return found


async def test_helpers_are_found_at_any_depth_and_any_time(tmp_path: Path, notes: list[Any]) -> None:
    """Absolute and relative names lead to one helper, in sub-folders and from handlers too."""
    write(tmp_path / "helper.py", "VALUE = 1\n")
    write(tmp_path / "late.py", "VALUE = 2\n")
    write(tmp_path / "kit" / "__init__.py", "from . import part\n")
    write(
        tmp_path / "kit" / "part.py", "import helper\nfrom .. import helper as same\nONE = helper is same\n"
    )
    write(tmp_path / "plain" / "deep.py", "from helper import VALUE\n")
    source = """
from __future__ import annotations
import dataclasses, kit.part, helper
import plain.deep as deep
from . import helper as relative
from .plain import deep as again

@dataclasses.dataclass
class Point:
    x: int

def handler(event):
    import late
    from late import VALUE
    return (VALUE, late.VALUE)

def setup(api):
    from notes23 import note
    api.on("x", handler)
    note((kit.part.ONE, helper is relative, deep is again, deep.VALUE, Point(1).x))
"""
    result = await load(write(tmp_path / "main.py", source))
    assert result.errors == []
    assert notes == [(True, True, True, 1, 1)]
    assert result.extensions[0].handlers["x"][0](None) == (2, 2)
    assert not {"helper", "late", "kit", "plain"} & set(sys.modules)


async def test_two_extensions_never_share_a_helper(tmp_path: Path, notes: list[Any]) -> None:
    """Extensions of one folder, and two loads of one extension, have a copy of the helper each."""
    write(tmp_path / "helper.py", "COUNT = []\n")
    source = "import helper\nfrom notes23 import note\ndef setup(api):\n    helper.COUNT.append(1)\n"
    paths = [write(tmp_path / name, source + "    note(len(helper.COUNT))\n") for name in ("a.py", "b.py")]
    await load(*paths)
    await load(*paths)
    assert notes == [1, 1, 1, 1]


async def test_the_standard_library_and_installed_packages_win_over_what_lies_beside(
    tmp_path: Path, notes: list[Any]
) -> None:
    """A helper can't take a module of the standard library away, a mere folder not an installed package."""
    write(tmp_path / "json.py", "raise ValueError('not this one')\n")
    write(tmp_path / "pathspec" / "index.py", "raise ValueError('not this one')\n")
    source = "import json, pathspec\nfrom notes23 import note\ndef setup(api):\n    note(json.dumps(1))\n"
    assert (await load(write(tmp_path / "main.py", source + "    note(pathspec.__file__)\n"))).errors == []
    assert (notes[0], str(tmp_path) in notes[1]) == ("1", False)


async def test_a_stale_pyc_is_never_believed(tmp_path: Path, notes: list[Any]) -> None:
    """Bytecode that looks right by size and second counts for nothing, and none is written."""
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    write(main, "import helper\nfrom notes23 import note\ndef setup(api):\n    note(('A', helper.V))\n")
    write(helper, "V = 'A'\n")
    for file in (main, helper):
        py_compile.compile(str(file), doraise=True)
        before = file.stat()
        write(file, file.read_text("utf-8").replace("'A'", "'B'"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    await load(str(main))
    assert notes == [("B", "B")]


async def test_a_failed_import_leaves_no_module_behind(tmp_path: Path) -> None:
    """What was imported before the failure, helpers included, is gone from sys.modules."""
    write(tmp_path / "helper.py")
    before = set(sys.modules)
    for end in ("raise ValueError", "import sys\nsys.exit()", "def", "import nowhere23"):
        result = await load(write(tmp_path / "bad.py", f"import helper\n{end}\n"))
        assert len(result.errors) == 1
    assert set(sys.modules) <= before


async def test_odd_files_load_as_well(tmp_path: Path, notes: list[Any]) -> None:
    """Dots and blanks in names, another suffix, a folder, a relative path and a link are all fine."""
    source = "from . import helper\nfrom notes23 import note\ndef setup(api):\n    note(1)\n"
    write(tmp_path / "helper.py")
    write(tmp_path / "pack" / "helper.py")
    write(tmp_path / "pack" / "index.py", source)
    names = ["a.b.py", "with blank.py", "odd.txt", "hÿphen-é.py"]
    for name in names:
        write(tmp_path / name, source)
    (tmp_path / "link.py").symlink_to("pack/index.py")
    result = await load(*names, "pack", "link.py", cwd=tmp_path)
    assert result.errors == []
    assert notes == [1] * 6
    assert [each.path for each in result.extensions] == [*names, "pack", "link.py"]
    assert result.extensions[5].resolved_path == os.path.realpath(tmp_path / "pack" / "index.py")


async def test_entry_points_name_modules_or_factories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: list[Any]
) -> None:
    """Of equal names one is chosen, whatever the order; an unknown one is an error of its path."""
    write(
        tmp_path / "site" / "chosen23.py", "from notes23 import note\ndef start(api):\n    note('started')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    index = [
        EntryPoint("offer", value, packages.ENTRY_POINT_GROUP) for value in ("z23:missing", "chosen23:start")
    ]
    for offered in (index, index[::-1]):

        def import_module(path: str, offered: Any = offered) -> Any:
            return loader.import_extension(path, entry_points=lambda group: offered)

        result = await load("<entry-point:offer>", "<entry-point:other>", import_module=import_module)
        assert [each.path for each in result.errors] == ["<entry-point:other>"]
    sys.modules.pop("chosen23", None)
    assert notes == ["started", "started"]


# --- load ------------------------------------------------------------------------------------------------


class Unprintable(Exception):
    """An error that can't even be shown."""

    def __str__(self) -> str:
        raise ValueError("not printable")


async def test_errors_that_say_nothing_are_told_all_the_same() -> None:
    """An error without text, or whose text fails, gives its kind; what is no factory is named."""

    def raising(error: BaseException) -> Callable[[Any], None]:
        def setup(api: Any) -> None:
            raise error

        return setup

    nothing: Any = None
    inline = [raising(ValueError()), raising(Unprintable()), raising(SystemExit(3)), nothing]
    result = await load(inline=[*inline, loader.InlineExtension(nothing, "n")])
    texts = [each.error for each in result.errors]
    for text, kind in zip(texts, ("ValueError", "Unprintable", "SystemExit"), strict=False):
        assert text.startswith("Failed to load extension: ")
        assert kind in text
    assert texts[3:] == [
        "Extension does not export a valid factory function: <inline:4>",
        "Extension does not export a valid factory function: <inline:n>",
    ]


async def test_a_load_under_way_for_another_cwd_neither_reads_nor_writes(tmp_path: Path) -> None:
    """The token holds the cwd: two sessions of two projects over one loader don't mix."""
    path, gates, imports = write(tmp_path / "a.py"), [asyncio.Event(), asyncio.Event()], list[int]()
    shared = loader.ExtensionLoader()

    async def run(cwd: Path, number: int) -> Any:
        async def import_module(name: str) -> Any:
            imports.append(number)
            await gates[number].wait()
            return SimpleNamespace(setup=lambda api: None)

        return await shared.load_cached([path, path], cwd=cwd, import_module=import_module)

    one = asyncio.ensure_future(run(tmp_path, 0))
    await asyncio.sleep(0)
    two = asyncio.ensure_future(run(tmp_path.parent, 1))
    await asyncio.sleep(0)
    for gate in gates[::-1]:
        gate.set()
        await asyncio.sleep(0.01)
    results = [await asyncio.wait_for(each, 10) for each in (one, two)]
    assert [len(each.extensions) for each in results] == [2, 2]
    assert imports == [0, 1, 0]
    await asyncio.wait_for(run(tmp_path.parent, 1), 10)
    assert imports == [0, 1, 0]


async def test_two_sessions_over_one_loader_share_factories_and_nothing_else(
    tmp_path: Path, notes: list[Any]
) -> None:
    """Each session has its own extension, runtime and bus; one that ends leaves the other alone."""
    source = "def setup(api):\n    from notes23 import note\n    api.events.on('c', note)\n    note(api)\n"
    path, shared = write(tmp_path / "a.py", source), loader.ExtensionLoader()
    results = [await shared.load_cached([path], cwd=tmp_path) for _ in range(2)]
    first, second = notes
    results[0].runtime.invalidate("session over")
    with pytest.raises(ExtensionError, match="session over"):
        first.events.emit("c", 1)
    second.events.emit("c", 2)
    assert notes[2:] == [2]


async def test_a_runtime_that_is_given_is_used(tmp_path: Path) -> None:
    """The second phase of a load goes on in the runtime of the first; inline factories are counted anew."""
    runtime = api_module.ExtensionRuntime()
    first = await load_inline(lambda api: api.register_flag("f", type="string", default="1"), runtime=runtime)
    second = await load_inline(
        lambda api: api.register_flag("f", type="string", default="2"), runtime=runtime
    )
    assert (first.runtime, second.runtime) == (runtime, runtime)
    assert runtime.flag_values == {"f": "1"}
    assert [each.extensions[0].path for each in (first, second)] == ["<inline:1>"] * 2


async def test_the_helper_for_a_loader_alone_scans_plainly(tmp_path: Path, notes: list[Any]) -> None:
    """Project (where trusted), user, given paths: one level, no ignore files, each file once."""
    source = "from notes23 import note\ndef setup(api):\n    note(__file__.rpartition('/')[2])\n"
    project, user = tmp_path / "cwd" / ".pi" / "extensions", tmp_path / "agent" / "extensions"
    for name in ("own.py", "both.py"):
        write(project / name, source)
    for name in ("mine.py", "more/a.py", "more/b.py", "index.py"):
        write(user / name, source)
    write(user / "more" / ".gitignore", "a.py")
    (user / "alias.py").symlink_to(project / "both.py")

    async def names(**options: Any) -> list[str]:
        notes.clear()
        paths = ["../agent/extensions/more", str(project / "both.py")]
        loaded = loader.discover_and_load_extensions(
            paths, cwd=tmp_path / "cwd", agent_dir=tmp_path / "agent", **options
        )
        assert (await asyncio.wait_for(loaded, 20)).errors == []
        return list(notes)

    assert await names() == ["both.py", "index.py", "mine.py", "a.py", "b.py"]
    assert await names(trusted=True) == ["both.py", "own.py", "index.py", "mine.py", "a.py", "b.py"]


# --- API -------------------------------------------------------------------------------------------------


async def kept_api(*factories: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The API of an extension that came up, and its runtime."""
    kept: list[Any] = []
    result = await load_inline(*factories, kept.append)
    assert result.errors == []
    return kept[0], result.runtime


async def test_an_ended_runtime_refuses_everything_and_stays_silent() -> None:
    """After `invalidate` every method of a kept API raises with the first reason, and no listener hears."""
    heard: list[Any] = []
    api, runtime = await kept_api()
    api.events.on("c", heard.append)
    runtime.bind(SimpleNamespace())
    runtime.invalidate("reloaded")
    runtime.invalidate("again")
    calls: list[Callable[[], object]] = [
        lambda: api.on("x", print),
        lambda: api.register_tool(tool("t")),
        lambda: api.register_command("c", print),
        lambda: api.register_flag("f", type="boolean"),
        lambda: api.get_flag("f"),
        lambda: api.register_shortcut("k", print),
        lambda: api.register_message_renderer("m", print),
        lambda: api.register_entry_renderer("e", print),
        lambda: api.register_provider("p", {}),
        lambda: api.unregister_provider("p"),
        lambda: api.events.emit("c", 1),
        lambda: api.events.on("c", print),
        lambda: api.send_message("x"),
        lambda: api.abort(),
        lambda: runtime.bind(SimpleNamespace()),
        runtime.assert_active,
    ]
    for call in calls:
        with pytest.raises(ExtensionError, match="reloaded"):
            call()
    with pytest.raises(ExtensionError, match="reloaded"):
        await api.exec("true")
    assert heard == []


@pytest.mark.parametrize(
    "register",
    [
        lambda api: api.on("", print),
        lambda api: api.on("tool_call", None),
        lambda api: api.register_tool("read"),
        lambda api: api.register_command("c", 1),
        lambda api: api.register_command(1, print),
        lambda api: api.register_flag("f", type="list"),
        lambda api: api.register_shortcut("k", None),
        lambda api: api.events.on("c", test_errors_that_say_nothing_are_told_all_the_same),
    ],
)
async def test_what_makes_no_sense_is_refused_at_registration(register: Callable[[Any], object]) -> None:
    """A registration that could only fail later fails where it is made."""
    api, _ = await kept_api()
    with pytest.raises(ExtensionError):
        register(api)


async def test_listeners_end_fail_and_follow_without_harm() -> None:
    """One that raises is reported, one that is ended hears nothing more, even while others are told."""
    heard: list[Any] = []
    ends: list[Callable[[], None]] = []
    faults: list[Any] = []
    api, runtime = await kept_api()

    def first(data: Any) -> None:
        heard.append(("first", data))
        ends[1]()
        api.events.on("c", lambda late: heard.append(("late", late)))
        raise ValueError("broken listener")

    ends.append(api.events.on("c", first))
    ends.append(api.events.on("c", heard.append))
    ends.append(api.events.on("c", heard.append))
    runtime.bind(SimpleNamespace(), faults.append)
    api.events.emit("c", 1)
    assert heard == [("first", 1), 1]
    assert [(each.event, each.error) for each in faults] == [("c", "broken listener")]
    for end in (ends[0], ends[0], ends[2]):
        end()
    api.events.emit("c", 2)
    assert heard[2:] == [("late", 2)]


async def test_what_a_factory_stages_nobody_sees_before_it_is_done() -> None:
    """While an async factory waits, neither its defaults nor its listeners nor its providers are there."""
    gate, heard, seen = asyncio.Event(), list[Any](), list[Any]()
    runtime = api_module.ExtensionRuntime()
    early, _ = await load_inline(seen.append, runtime=runtime), None
    assert early.errors == []

    async def slow(api: Any) -> None:
        api.register_flag("f", type="string", default="slow")
        api.events.on("c", heard.append)
        api.register_provider("p", {})
        assert api.get_flag("f") == "slow"
        await gate.wait()

    loading = asyncio.ensure_future(load_inline(slow, runtime=runtime))
    await asyncio.sleep(0.01)
    seen[0].events.emit("c", 1)
    registered: list[str] = []
    runtime.bind(SimpleNamespace(register_provider=lambda name, config: registered.append(name)))
    assert (runtime.flag_values, heard, registered) == ({}, [], [])
    gate.set()
    assert (await asyncio.wait_for(loading, 10)).errors == []
    seen[0].events.emit("c", 2)
    assert (runtime.flag_values, heard, registered) == ({"f": "slow"}, [2], ["p"])


async def test_flags_declared_later_and_values_that_were_set() -> None:
    """A default fills a gap at any time, beats no value, and is told apart from what was set."""
    api, runtime = await kept_api()
    runtime.flag_values["b"] = False
    api.register_flag("a", type="string", default="x")
    api.register_flag("b", type="boolean", default=True)
    api.register_flag("c", type="string")
    assert [api.get_flag(name) for name in "abcd"] == ["x", False, None, None]
    assert runtime.set_values() == {"b": False}
    runtime.flag_values["a"] = "y"
    assert runtime.set_values() == {"a": "y", "b": False}


async def test_after_binding_a_provider_s_error_is_the_caller_s() -> None:
    """What can be answered at once is not queued, and un-registration reaches the core."""
    api, runtime = await kept_api()
    gone: list[str] = []

    def refuse(name: str, config: Any) -> None:
        raise LookupError(name)

    runtime.bind(SimpleNamespace(register_provider=refuse, unregister_provider=gone.append))
    with pytest.raises(LookupError):
        api.register_provider("p", {})
    api.unregister_provider("any")
    assert gone == ["any"]


@POSIX
async def test_exec_gives_output_code_and_an_end(tmp_path: Path) -> None:
    """A command runs in the load's directory; when its time is up, its children end with it."""
    api, _ = await kept_api()
    result = await api.exec("sh", ["-c", "pwd; echo oops >&2; exit 3"], cwd=str(tmp_path))
    assert (result.stdout.strip(), result.stderr, result.code, result.killed) == (
        os.path.realpath(tmp_path),
        "oops\n",
        3,
        False,
    )
    assert (await api.exec("pwd")).stdout.strip() == os.path.realpath(os.curdir)
    late = await asyncio.wait_for(api.exec("sh", ["-c", "echo so far; sleep 60 & sleep 60"], timeout=0.2), 20)
    assert (late.stdout, late.killed, late.code) == ("so far\n", True, -9)
    with pytest.raises(FileNotFoundError):
        await api.exec("no-such-command-23")


@POSIX
async def test_a_cancelled_exec_leaves_no_process(tmp_path: Path) -> None:
    """Cancelling the caller kills the command."""
    api, _ = await kept_api()
    marker = tmp_path / "pid"
    running = asyncio.ensure_future(
        api.exec("sh", ["-c", f"echo $$ > '{marker}.new'; mv '{marker}.new' '{marker}'; sleep 60"])
    )
    for _ in range(1000):
        if marker.exists():
            break
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 20)
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text("utf-8")), 0)


async def test_the_real_source_goes_to_extension_tools_and_commands() -> None:
    """Tools and commands carry what the resource loader knows, those registered later too."""

    def factory(api: Any) -> None:
        kept.append(api)
        api.register_tool(tool("t"))
        api.register_command("c", print)

    kept: list[Any] = []
    result = await load_inline(factory)
    extension = result.extensions[0]
    info = sources.SourceInfo("p", "pack", "user", "package", None)
    extension.apply_source_info(info)
    kept[0].register_tool(tool("later"))
    carried = [*extension.tools.values(), *extension.commands.values(), extension]
    assert [each.source_info for each in carried] == [info] * 4
