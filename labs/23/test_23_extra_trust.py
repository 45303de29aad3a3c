"""Chapter 23, beyond the labs: trust that is asked for, kept, damaged, and nothing touched before it."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pi_course.extensions import loader, packages, runner, session, trust
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition

pytestmark = pytest.mark.extra23

POSIX = pytest.mark.skipif(os.name == "nt", reason="locks and permissions of POSIX")


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


def resources(root: Path, **options: Any) -> Any:
    """A resource loader with its places below a root, without distributions of the machine."""
    places = {"cwd": root / "project", "agent_dir": root / "agent", "home": root}
    return session.ResourceLoader(**places | options)


# --- trust ---
async def test_nothing_of_a_project_is_touched_before_trust(
    tmp_path: Path, notes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a module, package or installed distribution is opened, run or looked for until trust is given."""
    root = tmp_path.resolve()
    site, project = root / "site", root / "project"
    write_noting(project / ".pi/extensions/auto.py")
    write_noting(project / "pack/index.py")
    write_noting(site / "offered23b.py")
    write(site / "offered23b.dist-info/METADATA", "Metadata-Version: 2.1\nName: offered23b\nVersion: 1\n")
    write(site / "offered23b.dist-info/entry_points.txt", "[pi.extensions]\nof = offered23b\n")
    monkeypatch.syspath_prepend(str(site))
    sys.modules.pop("offered23b", None)
    looked: list[str] = []

    def find_spec(name: str, *rest: Any) -> None:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            looked.append(name)

    spy = SimpleNamespace(find_spec=find_spec)
    monkeypatch.setattr(sys, "meta_path", [spy, *sys.meta_path])
    settings = packages.ExtensionSettings([], [str(project / "pack")])
    shelf = resources(root, project=settings)
    events = _watch_files(project, site / "offered23b.py")

    def resolve(running: Any) -> bool:
        looked_before.extend(looked)
        events_before.extend(events)
        return True

    for resolver in (None, lambda running: False, lambda running: 1, lambda running: "yes"):
        result = await shelf.reload(resolver)
        assert result.extensions == []
        assert notes == []
        assert (looked, events) == ([], [])
    looked_before: list[str] = []
    events_before: list[str] = []
    result = await shelf.reload(resolve)
    assert (looked_before, events_before) == ([], [])
    assert sorted(notes) == [
        f"{what} {who}" for what in ("import", "setup") for who in ("auto", "index", "offered23b")
    ]
    assert [each.path for each in result.extensions][-1] == "<entry-point:of>"
    assert "offered23b" in looked
    assert events


_WATCHED: list[tuple[list[str], tuple[str, ...]]] = []


def _watch_files(*places: Path) -> list[str]:
    """What the interpreter opens, lists or runs below the places; an audit hook can't be taken away again."""
    if not _WATCHED:

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in ("open", "os.listdir", "os.scandir", "exec") and arguments:
                path = getattr(arguments[0], "co_filename", arguments[0])
                seen, prefixes = _WATCHED[0]
                if isinstance(path, str) and path.startswith(prefixes):
                    seen.append(f"{event} {path}")

        _WATCHED.append(([], ()))
        sys.addaudithook(hook)
    seen: list[str] = []
    _WATCHED[0] = (seen, tuple(map(str, places)))
    return seen


async def test_the_last_answer_stands_until_another_is_given(tmp_path: Path, notes: list[Any]) -> None:
    """A reload without a resolver keeps the decision, a new one replaces it; what needs none gets none."""
    write_noting(tmp_path / "project/.pi/extensions/team.py")
    shelf = resources(tmp_path)
    for resolver, count in (
        (None, 0),
        (lambda running: True, 1),
        (None, 1),
        (lambda running: False, 0),
        (None, 0),
    ):
        assert len((await shelf.reload(resolver)).extensions) == count
    # What needs no trust is no answer either: what the project brings later is asked for.
    other = resources(tmp_path / "other")
    asked: list[Any] = []
    await other.reload(asked.append)
    assert asked == []
    write_noting(tmp_path / "other/project/.pi/extensions/late.py")
    assert (await other.reload()).extensions == []


async def test_a_failed_question_leaves_nothing_half_loaded(tmp_path: Path, notes: list[Any]) -> None:
    """What the resolver raises comes out; what was loaded for it is dead; the next reload works."""
    write_noting(tmp_path / "project/.pi/extensions/team.py")
    apis: list[Any] = []
    shelf = resources(tmp_path, inline=[apis.append])
    error = trust.TrustStoreError("damaged")

    async def resolve(running: Any) -> bool:
        raise error

    with pytest.raises(trust.TrustStoreError) as caught:
        await shelf.reload(resolve)
    assert caught.value is error
    with pytest.raises(ExtensionError, match="not loaded to the end"):
        apis[0].register_tool(tool("late"))
    assert notes == []
    assert len((await shelf.reload(lambda running: True)).extensions) == 2


async def test_a_failing_trust_handler_is_recorded_in_the_result(tmp_path: Path, notes: list[Any]) -> None:
    """The resource loader's errors hold what went wrong while trust was asked for."""
    write_noting(tmp_path / "project/.pi/extensions/team.py")
    shelf = resources(tmp_path, inline=[on(project_trust=[failing, lambda event: True, lambda event: "no"])])
    store = trust.TrustStore(tmp_path / "trust.json")
    result = await shelf.reload(
        lambda running: trust.resolve_trust(cwd=shelf.cwd, runner=running, store=store, default=True)
    )
    assert notes == []
    assert [error.path for error in result.errors] == ["<inline:1>", "<inline:1>"]
    assert result.errors[0].error == "RuntimeError: handler is broken"
    assert "True" in result.errors[1].error


async def test_a_user_s_extension_that_the_project_disables_drops_out(
    tmp_path: Path, notes: list[Any]
) -> None:
    """The best-ranked alias decides in the end, even about what the first phase has loaded."""
    mine = write_noting(tmp_path / "agent/extensions/mine.py")
    (tmp_path / "project/.pi/extensions").mkdir(parents=True)
    (tmp_path / "project/.pi/extensions/alias.py").symlink_to(mine)
    shelf = resources(tmp_path, project=packages.ExtensionSettings(["!alias.py"], []))
    assert len((await shelf.reload()).extensions) == 1
    result = await shelf.reload(lambda running: True)
    assert (result.extensions, result.errors) == ([], [])
    assert notes == ["import mine", "setup mine"] * 2


async def test_resolve_trust_takes_only_true_and_asks_nobody_without_need() -> None:
    """What merely looks like trust is none, from the user, the default and the store's own type."""
    running, _ = await run_by()
    for answer in (1, "yes", None, [True]):
        asked = {"runner": running, "default": None, "ask": lambda cwd, answer=answer: answer}
        store = SimpleNamespace(get=lambda directory: None)
        assert await trust.resolve_trust(cwd=os.curdir, store=store, **asked) is False
    store = SimpleNamespace(get=lambda directory: None)
    assert await trust.resolve_trust(cwd=os.curdir, runner=running, store=store) is False


def test_what_can_t_be_judged_requires_trust(tmp_path: Path) -> None:
    """A dangling link counts, a file in the place of `.pi` does not, and outside home every ancestor does."""
    home = tmp_path / "home"
    (home / "a/.pi").mkdir(parents=True)
    (home / "a/.pi/extensions").symlink_to(tmp_path / "nowhere")
    assert trust.requires_trust(home / "a", home=home) is True
    write(home / "b/.pi", "a file")
    assert trust.requires_trust(home / "b", home=home) is False
    (tmp_path / "srv/.agents/skills").mkdir(parents=True)
    (tmp_path / "srv/project").mkdir()
    assert trust.requires_trust(tmp_path / "srv/project", home=home) is True
    # The link's target is the project, wherever the link stands.
    (home / "c").symlink_to(tmp_path / "srv/project", target_is_directory=True)
    assert trust.requires_trust(home / "c", home=home) is True
    (tmp_path / "alias").symlink_to(home, target_is_directory=True)
    (home / ".agents/skills").mkdir(parents=True)
    (home / "d").mkdir()
    assert trust.requires_trust(home / "d", home=tmp_path / "alias") is False


@POSIX
def test_a_folder_that_may_not_be_read_requires_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can't be looked at may hold anything."""
    (tmp_path / "project/.pi").mkdir(parents=True)
    (tmp_path / "project/.pi").chmod(0)
    closed = str(tmp_path / "project/.pi") + os.sep

    def refused(look: Any) -> Any:
        """The same function, refused below the closed folder for root too."""

        def looked(path: Any, *more: Any, **options: Any) -> Any:
            if not isinstance(path, int) and os.fsdecode(path).startswith(closed):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return look(path, *more, **options)

        return looked

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, refused(getattr(os, name)))
    try:
        assert trust.requires_trust(tmp_path / "project", home=tmp_path) is True
    finally:
        (tmp_path / "project/.pi").chmod(0o700)


# --- the trust store ---
def test_the_store_keeps_what_it_does_not_change_and_leaves_no_litter(tmp_path: Path) -> None:
    """Only its file, private to the user, and the lock lie in the folder; a link to the file stays a link."""
    real = tmp_path / "dotfiles/trust.json"
    write(real, json.dumps({"/elsewhere": False}))
    link = tmp_path / "agent/trust.json"
    link.parent.mkdir()
    link.symlink_to(real)
    store = trust.TrustStore(link)
    store.set(tmp_path, True)
    assert link.is_symlink()
    assert json.loads(real.read_text("utf-8")) == {"/elsewhere": False, str(tmp_path.resolve()): True}
    assert {path.name for path in real.parent.iterdir()} <= {"trust.json", "trust.json.lock"}
    if os.name != "nt":
        assert real.stat().st_mode & 0o077 == 0
    store.set(tmp_path, None)
    store.set(tmp_path, None)
    assert json.loads(real.read_text("utf-8")) == {"/elsewhere": False}


@pytest.mark.parametrize(
    "damage",
    [b"\xff", b'{"/a": true, "/a": false}', b'{"/a": 1}', b"[" * 100_000, b'{"/a": true} {}', b"NaN"],
    ids=["no text", "twice", "a number", "too deep", "more", "no object"],
)
def test_odd_damage_is_an_error_too(tmp_path: Path, damage: bytes) -> None:
    """Whatever a file holds that is no object of true and false, nobody is told anything."""
    file = tmp_path / "trust.json"
    file.write_bytes(damage)
    for act in (lambda: trust.TrustStore(file).get("/a"), lambda: trust.TrustStore(file).set("/b", True)):
        with pytest.raises(trust.TrustStoreError):
            act()
    assert file.read_bytes() == damage


def test_a_store_that_can_t_be_a_file_is_an_error(tmp_path: Path) -> None:
    """A folder in its place, or a file in the place of its folder, is said, not passed over."""
    (tmp_path / "trust.json").mkdir()
    write(tmp_path / "file")
    for place in (tmp_path / "trust.json", tmp_path / "file" / "trust.json"):
        with pytest.raises(trust.TrustStoreError):
            trust.TrustStore(place).set(tmp_path, True)
    with pytest.raises(trust.TrustStoreError):
        trust.TrustStore(tmp_path / "trust.json").get(tmp_path)


@pytest.mark.parametrize("value", [1, 0, "yes", "false"])
def test_only_true_false_and_none_can_be_stored(tmp_path: Path, value: Any) -> None:
    """What merely looks like an answer is the caller's mistake, and nothing is written."""
    with pytest.raises(TypeError):
        trust.TrustStore(tmp_path / "trust.json").set(tmp_path, value)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_replacement_leaves_the_old_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk costs the new answer, not the old ones, and leaves no half file."""
    store = trust.TrustStore(tmp_path / "trust.json")
    store.set(tmp_path, False)
    before = (tmp_path / "trust.json").read_bytes()

    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(trust.TrustStoreError, match="No space left"):
        store.set(tmp_path, True)
    assert (tmp_path / "trust.json").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {"trust.json", "trust.json.lock"}


HOLDER = """
import os, sys
from pi_course.extensions.trust import TrustStore

def hold(*paths):
    print("held", flush=True)
    sys.stdin.read()

os.replace = os.rename = hold
TrustStore(sys.argv[1]).set("/held", True)
"""

WRITER = """
import sys
from pi_course.extensions.trust import TrustStore

store = TrustStore(sys.argv[1], patience=60)
for number in range(20):
    store.set(f"/{sys.argv[2]}/{number}", True)
"""


def _start(script: str, *arguments: str) -> subprocess.Popen[str]:
    source = Path(trust.__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_store_that_another_process_holds_can_be_read_and_says_so_to_writers(tmp_path: Path) -> None:
    """Readers never wait; a writer waits for a bounded time; a dead holder holds nothing."""
    file = tmp_path / "trust.json"
    store = trust.TrustStore(file, patience=0.1)
    store.set(tmp_path, True)
    with _start(HOLDER, str(file)) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            assert store.get(tmp_path) is True
            with pytest.raises(trust.TrustStoreError, match="held by another process"):
                store.set(tmp_path, False)
            assert store.get(tmp_path) is True
        finally:
            holder.kill()
    store.set(tmp_path, False)
    assert store.get(tmp_path) is False


def test_two_writers_lose_no_answer_and_no_reader_sees_half_a_file(tmp_path: Path) -> None:
    """Writers of two processes take turns; whoever reads meanwhile reads a whole file."""
    file = tmp_path / "trust.json"
    store = trust.TrustStore(file)
    writers = [_start(WRITER, str(file), name) for name in ("a", "b")]
    deadline = time.monotonic() + 60
    while any(writer.poll() is None for writer in writers):
        assert time.monotonic() < deadline
        assert store.get("/c") is None
        time.sleep(0.005)
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert [store.get(f"/{name}/{number}/deep") for name in "ab" for number in range(20)] == [True] * 40
