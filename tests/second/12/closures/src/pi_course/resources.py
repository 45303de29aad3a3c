"""The text resources and the extensions of a workspace: who wins, what is read when, what code may do."""

import asyncio
import contextlib
import inspect
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, cast, get_args
from weakref import WeakKeyDictionary

import yaml

from pi_course.messages import ToolCall, ToolResultMessage, UserMessage, user_message
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.tools import ToolExecutor, ToolRegistry, ToolRegistryError, error_result
from pi_course.values import clone, freeze


class ResourceError(Exception):
    """A resource can't be used; `.source` is the file, folder, name or request it is about."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source


class ExtensionError(Exception):
    """An extension broke the rules of registration."""


@dataclass(slots=True)
class InstructionsResource:
    """The rules of a project, from its AGENTS.md."""

    name: str
    source: str
    root: str
    body: str
    kind: ClassVar[Literal["instructions"]] = "instructions"


@dataclass(slots=True)
class SkillResource:
    """What the catalog tells of a skill; its text is read at activation."""

    name: str
    description: str
    source: str
    root: str
    kind: ClassVar[Literal["skill"]] = "skill"


@dataclass(slots=True)
class TemplateResource:
    """A user message with `{{name}}` places to fill."""

    name: str
    source: str
    root: str
    body: str
    description: str = ""
    kind: ClassVar[Literal["template"]] = "template"


Resource: TypeAlias = InstructionsResource | SkillResource | TemplateResource


@dataclass(slots=True)
class ResourceCatalog:
    """All resources that won, and the same by kind."""

    resources: list[Resource]
    instructions: list[InstructionsResource]
    skills: list[SkillResource]
    templates: list[TemplateResource]


@dataclass(slots=True)
class SkillFile:
    """A file of a skill, as it was asked for, where it really lies, and its text."""

    request: str
    source: str
    content: str


@dataclass(slots=True)
class ActivatedSkill:
    """A skill with its text, for this round."""

    name: str
    description: str
    source: str
    root: str
    body: str
    resources: list[SkillFile] = field(default_factory=list)
    kind: ClassVar[Literal["skill"]] = "skill"


HookEvent: TypeAlias = Literal["before_tool_call", "after_tool_result"]


@dataclass(frozen=True, slots=True)
class HookDecision:
    """What a before hook answers."""

    decision: Literal["allow", "deny"]
    reason: str = ""


BeforeToolCall: TypeAlias = Callable[[ToolCall], HookDecision | Awaitable[HookDecision]]
AfterToolResult: TypeAlias = Callable[[ToolResultMessage], object]


class ExtensionContext(Protocol):
    """What an extension's `setup(context)` may do."""

    def register_tool(self, tool: ToolDefinition) -> None:
        """Ask for a tool to be added; what is no tool definition is an `ExtensionError`."""

    def on(self, event: HookEvent, handler: BeforeToolCall | AfterToolResult) -> None:
        """Ask for a plain or async hook; an unknown event, or no callable, is an `ExtensionError`."""


@dataclass(frozen=True, slots=True)
class ExtensionSource:
    """Which extension, and where its code lies."""

    id: str
    path: str


@dataclass(frozen=True, slots=True)
class ExtensionLoadResult:
    """What became of an extension."""

    id: str
    status: Literal["active", "skipped_untrusted"]


@dataclass(frozen=True, slots=True)
class ExtensionDiagnostic:
    """A fault of an extension's hook."""

    extension_id: str
    hook: HookEvent
    kind: Literal["error", "timeout"]
    message: str


async def discover_resources(roots: Sequence[str | os.PathLike[str]]) -> ResourceCatalog:
    """Return what the roots offer; a resource of an earlier root wins over one of the same kind and name.

    In each root, where they are there: `AGENTS.md` (named `AGENTS`); `skills/<folder>/SKILL.md`, whose YAML
    front matter between two `---` lines holds `name` and `description`; `templates/*.md`, each named after
    its file, with front matter that may hold `description`. `source` and `root` are canonical absolute paths;
    a skill's root is its own folder. Order: instructions, skills, templates, then by name.

    Raises `ResourceError`: the same kind and name twice in one root, a root that is missing, whatever is
    there but can't be read or parsed. (Chapter 12, Lab 12.1)
    """
    return await asyncio.to_thread(_discover, [os.fspath(root) for root in roots])


def _discover(roots: Sequence[str]) -> ResourceCatalog:
    winners: dict[tuple[str, str], Resource] = {}
    for given in roots:
        with _as_resource_error(given):
            root = Path(os.path.realpath(given, strict=True))
            if not os.path.isdir(given):
                raise ValueError("a root is a folder")
        own: dict[tuple[str, str], Resource] = {}
        for resource in _found_in(root):
            identity = (resource.kind, resource.name)
            if (first := own.setdefault(identity, resource)) is not resource:
                reason = f"{first.source} is a {first.kind} named {first.name!r} as well"
                raise ResourceError(resource.source, reason)
            winners.setdefault(identity, resource)
    views: list[Any] = [
        sorted([winner for winner in winners.values() if isinstance(winner, kind)], key=attrgetter("name"))
        for kind in get_args(Resource)
    ]
    return clone(ResourceCatalog([*chain(*views)], *views))  # a clone keeps no sharing between the lists


def _found_in(root: Path) -> Iterator[Resource]:
    if file := _real_file(root / "AGENTS.md", root):
        with _as_resource_error(str(file)):
            yield InstructionsResource("AGENTS", str(file), str(root), _text(_content(file)))
    for place in _entries(root / "skills"):
        with _as_resource_error(str(place)):
            folder = Path(os.path.realpath(place, strict=True))
        if folder.is_dir() and (file := _real_file(folder / "SKILL.md", folder)):
            with _as_resource_error(str(file)):
                name, description, _ = _skill_parts(_content(file, at_most=_FRONT_MATTER_LIMIT + 8))
                yield SkillResource(name, description, str(file), str(folder))
    for place in _entries(root / "templates"):
        if not place.name.endswith(".md") or place.name.startswith(".") or os.path.isdir(place):
            continue
        if file := _real_file(place, root):
            with _as_resource_error(str(file)):
                front, body = _divided(content := _content(file)) or (b"", content)
                description = _string(_mapping(front), "description", default="")
                yield TemplateResource(place.stem, str(file), str(root), _text(body), description)


@contextlib.contextmanager
def _as_resource_error(source: str) -> Iterator[None]:
    """Turn what the system, a decoder or a check of this module finds wrong into a `ResourceError`."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        raise ResourceError(source, str(error) or type(error).__name__) from error


def _is_there(place: Path) -> bool:
    """Tell whether the folder has such an entry, be it a link to nowhere."""
    try:
        os.lstat(place)
    except FileNotFoundError:
        return False
    return True


def _entries(folder: Path) -> list[Path]:
    with _as_resource_error(str(folder)):
        return sorted(folder / name for name in os.listdir(folder)) if _is_there(folder) else []


def _real_file(place: Path, border: Path) -> Path | None:
    """Return where the links of a place lead, `None` where there is nothing to follow."""
    with _as_resource_error(str(place)):
        return _followed(place, border) if _is_there(place) else None


def _followed(place: Path, border: Path) -> Path:
    """Follow the links of a place; the end must lie within the border, which is canonical."""
    real = Path(os.path.realpath(place, strict=True))
    if not real.is_relative_to(border):
        raise ValueError(f"leads to {real}, which is outside {border}")
    return real


def _content(file: Path, *, at_most: int = -1) -> bytes:
    """Read a regular file, without its byte order mark; any other kind is refused, and never waited for."""
    extra = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | extra)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("is no regular file")
        return stream.read(at_most).removeprefix(b"\xef\xbb\xbf")


def _text(content: bytes) -> str:
    return content.decode().replace("\r\n", "\n")


_FRONT_MATTER_LIMIT = 64 * 1024
_OPENING = re.compile(rb"---[ \t]*\r?\n")
_CLOSING = re.compile(rb"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


def _divided(content: bytes) -> tuple[bytes, bytes] | None:
    """Return front matter and body, still as bytes: the body may be invalid or cut off. `None` without one."""
    opening = _OPENING.match(content)
    closing = opening and _CLOSING.search(content, opening.end())
    if not opening or not closing:
        return None
    if closing.end() > _FRONT_MATTER_LIMIT:
        raise ValueError(f"the front matter is longer than {_FRONT_MATTER_LIMIT} bytes")
    return content[opening.end() : closing.start()], content[closing.end() :]


def _skill_parts(content: bytes) -> tuple[str, str, bytes]:
    """Return name, description and the undecoded body of a SKILL.md or of the beginning of one."""
    parts = _divided(content)
    if parts is None:
        raise ValueError(f"no front matter that is closed within {_FRONT_MATTER_LIMIT} bytes")
    front, body = _mapping(parts[0]), parts[1]
    return _string(front, "name"), _string(front, "description"), body


def _string(front: Mapping[Any, Any], key: str, *, default: str | None = None) -> str:
    """Return a string of the front matter, which is there and not empty unless there is a default."""
    value = front.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise ValueError(f"{key} must be a {'' if default is not None else 'non-empty '}string")
    return value


def _mapping(front: bytes) -> dict[Any, Any]:
    """Parse front matter; `ValueError` whatever the parser has against it."""
    try:
        loader = _Loader(_text(front))
        node = loader.get_single_node()
        data = {} if node is None else loader.construct_document(node)
    except Exception as error:  # YAML's own errors aren't all that strangers can provoke
        raise ValueError(f"malformed front matter: {type(error).__name__}: {error}") from error
    if isinstance(data, dict):
        return data
    raise ValueError("the front matter is no mapping")


class _Loader(yaml.SafeLoader):
    """YAML's safe loader without merge keys, a few of which can blow up to gigabytes, and without doubles."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys) or any(key.tag.endswith(":merge") for key, _ in node.value):
            raise ValueError("a merge key, or a key given twice")


async def activate_skill(
    catalog: ResourceCatalog, name: str, *, resources: Sequence[str] = ()
) -> ActivatedSkill:
    """Read the text of a skill of the catalog, and those files of its folder that are asked for.

    `resources` are paths relative to the skill's root; one that is asked for twice comes once.

    Raises `ResourceError`: a skill that the catalog doesn't have or that bears another name by now, and a
    request that is empty, absolute, missing, or leads out of the skill's root. (Chapter 12, Lab 12.2)
    """
    entry = next((skill for skill in catalog.skills if skill.name == name), None)
    if entry is None:
        raise ResourceError(name, "the catalog has no skill of this name")
    return await asyncio.to_thread(_activated, clone(entry), list(dict.fromkeys(resources)))


def _activated(entry: SkillResource, requests: Sequence[str]) -> ActivatedSkill:
    root = Path(entry.root)
    with _as_resource_error(entry.source):
        name, description, body = _skill_parts(_content(_followed(Path(entry.source), root)))
        if name != entry.name:
            raise ValueError(f"the skill is called {name!r} by now, not {entry.name!r}")
        text = _text(body)
    files = [_skill_file(root, request) for request in requests]
    return ActivatedSkill(entry.name, description, entry.source, entry.root, text, files)


def _skill_file(root: Path, request: str) -> SkillFile:
    with _as_resource_error(request):
        if os.path.basename(request) in ("", os.curdir, os.pardir) or Path(request).anchor:
            raise ValueError("is no relative path of a file")
        written = Path(os.path.normpath(root / request))
        if not written.is_relative_to(root):
            raise ValueError(f"leads out of {root}")
        real = _followed(written, root)
        return SkillFile(request, str(real), _text(_content(real)))


def render_template(template: TemplateResource, args: Mapping[str, str]) -> UserMessage:
    """Return the template's body as a user message, every `{{name}}` replaced by that argument.

    A name begins with a letter or an underscore and goes on with letters, digits and underscores; all other
    text stays as it is. Further arguments are ignored.

    Raises `ResourceError` that names a missing argument. (Chapter 12, Lab 12.3)
    """

    def argument(place: re.Match[str]) -> str:
        if place[1] not in args:
            raise ResourceError(template.source, f"there is no argument for {place[0]}")
        return args[place[1]]

    return user_message(_PLACE.sub(argument, template.body))


_PLACE = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")


def format_resource_context(catalog: ResourceCatalog, activated_skills: Sequence[ActivatedSkill]) -> str:
    """Return the text on resources for the system prompt.

    Sections, in this order: `# Pi resources`; the body of each instructions resource; a line
    `name: description` for every skill; for each activated skill, by name, its body, then the contents of
    its files. No section has newlines at its ends, and one blank line stands between two. Without
    instructions and skills the text is empty.

    Raises `ResourceError` for a skill that is activated twice or isn't of this catalog.
    (Chapter 12, Lab 12.3)
    """
    unused = {(skill.name, skill.source) for skill in catalog.skills}
    for skill in activated_skills:
        if (skill.name, skill.source) not in unused:
            raise ResourceError(skill.name, f"{skill.source} is active already, or not of this catalog")
        unused.remove((skill.name, skill.source))
    if not catalog.instructions and not catalog.skills:
        return ""
    by_name = sorted(activated_skills, key=attrgetter("name"))
    sections = chain(
        ["# Pi resources"],
        [instructions.body for instructions in catalog.instructions],
        [f"{skill.name}: {skill.description}" for skill in catalog.skills],
        *([skill.body, *(file.content for file in skill.resources)] for skill in by_name),
    )
    return "\n\n".join(filter(None, [section.strip("\n") for section in sections]))


class ExtensionHost:
    """The committed extensions around a tool registry."""

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        """Return an executor that lets the committed hooks take part in each call of `core`.

        Before hooks, in the order of registration, decide whether `core` runs: a deny, an exception, a
        timeout and an answer that is no decision all give an error result that is paired with the call
        (`details == {"extensionId": ..., "reason": ...}`). After hooks, in that order too, see its result.
        Faults of hooks are reported as `ExtensionDiagnostic`; one of an after hook changes nothing else.
        Hooks get frozen copies, the caller gets a copy of the result. A plain hook that blocks the event loop
        can't be timed out, as nobody is left to look at the clock. (Chapter 12, Lab 12.5)
        """
        _, wrap = _INSIDES[self]
        return wrap(core)


_Handler: TypeAlias = Callable[[Any], object]
_Staged: TypeAlias = tuple[list[ToolDefinition], list[tuple[HookEvent, _Handler]]]
_Hook: TypeAlias = tuple[str, HookEvent, _Handler]  # with the extension's id
_Ask: TypeAlias = Callable[[str, HookEvent, _Handler, object], Awaitable[str | None]]
# Commit and wrap of each host, out of reach for who has the host alone.
_INSIDES: WeakKeyDictionary[
    ExtensionHost, tuple[Callable[[str, _Staged], None], Callable[[ToolExecutor], ToolExecutor]]
] = WeakKeyDictionary()


def create_extension_host(
    registry: ToolRegistry,
    *,
    hook_timeout: float = 5.0,
    on_diagnostic: Callable[[ExtensionDiagnostic], None] | None = None,
) -> ExtensionHost:
    """Return a host without extensions, which adds their tools to `registry`.

    `hook_timeout`, in seconds, is how long it waits for one hook; `ValueError` unless it is positive.
    (Chapter 12, Lab 12.4)
    """
    if isinstance(hook_timeout, bool) or not isinstance(hook_timeout, int | float) or not hook_timeout > 0:
        raise ValueError(f"hook_timeout is a positive number of seconds, not {hook_timeout!r}")
    hooks, ids = list[_Hook](), set[str]()
    ask = _asking(min(hook_timeout, 1e9), on_diagnostic)  # no event loop's clock counts to infinity

    def commit(owner: str, staged: _Staged) -> None:
        if not isinstance(owner, str) or not owner or owner in ids:
            raise ExtensionError(f"the extension id {owner!r} is active already, or none")
        try:
            registry.register(*staged[0])  # all of them or none; nothing after it can fail
        except ToolRegistryError as error:
            raise ExtensionError(f"extension {owner!r}: {error}") from error
        hooks.extend([(_plain(owner), event, handler) for event, handler in staged[1]])
        ids.add(owner)

    host = ExtensionHost()
    _INSIDES[host] = commit, lambda core: partial(_hooked, hooks, ask, core)
    return host


async def _hooked(
    hooks: Iterable[_Hook], ask: _Ask, core: ToolExecutor, call: ToolCall, context: ToolContext
) -> ToolResultMessage:
    asked, present = freeze(call), tuple(hooks)
    for owner, event, handler in present:
        if event == "before_tool_call" and (reason := await ask(owner, event, handler, asked)) is not None:
            text = f"Blocked by the extension {owner}: {reason or 'it gave no reason'}"
            return error_result(asked, text, details={"extensionId": owner, "reason": reason})
    result: ToolResultMessage = freeze(await _settled(core(clone(asked), context)))
    for owner, event, handler in present:
        if event == "after_tool_result":
            await ask(owner, event, handler, result)
    return clone(result)


def _asking(limit: float, on_diagnostic: Callable[[ExtensionDiagnostic], None] | None) -> _Ask:
    """Return what runs one hook, reports its failure, and gives the reason to block, `None` without one."""

    async def attempt(event: HookEvent, handler: _Handler, value: object) -> str | None:
        answer = handler(value)
        answer = await answer if inspect.isawaitable(answer) else answer
        return _refusal(answer) if event == "before_tool_call" else None

    async def ask(owner: str, event: HookEvent, handler: _Handler, value: object) -> str | None:
        task = asyncio.create_task(attempt(event, handler, value))  # what it swallows or raises stays there
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)
        task.add_done_callback(lambda late: late.cancelled() or late.exception())  # retrieved, so no warning
        kind: Literal["error", "timeout"] = "error"
        try:
            done, _ = await asyncio.wait({task}, timeout=limit)
        finally:
            task.cancel()  # does nothing to a task that is done
        if not done:
            kind, message = "timeout", f"the hook gave no answer within {limit:g} s"
        elif task.cancelled():
            message = "the hook cancelled itself"
        elif (error := task.exception()) is not None:
            message = _described(error)
        else:
            return task.result()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            if on_diagnostic:
                on_diagnostic(ExtensionDiagnostic(owner, event, kind, message))
        return message

    return ask


_RUNNING: set[asyncio.Task[str | None]] = set()  # an event loop refers to its tasks only weakly


def _refusal(answer: object) -> str | None:
    """Return why a before hook says no, `None` where it allows; raise for what is no decision."""
    if not issubclass(type(answer), HookDecision):  # no `__class__` deceives this as it does isinstance
        raise TypeError(f"a before hook answers with a HookDecision, not with a {type(answer).__name__}")
    decision = _plain(cast(HookDecision, answer).decision)
    if decision not in ("allow", "deny"):
        raise ValueError(f"a before hook decides allow or deny, not {decision!r}")
    return None if decision == "allow" else _plain(cast(HookDecision, answer).reason)


def _described(error: BaseException) -> str:
    with contextlib.suppress(Exception, asyncio.CancelledError):
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return type(error).__name__


async def load_extension(
    source: ExtensionSource,
    *,
    host: ExtensionHost,
    is_trusted: Callable[[ExtensionSource], bool | Awaitable[bool]],
    import_module: Callable[[ExtensionSource], object],
) -> ExtensionLoadResult:
    """Load an extension: `is_trusted(source)`, `import_module(source)`, its `setup(context)`, commit.

    All three may be plain or async, and what they raise comes out. Trusted means that the answer is `True`;
    otherwise nothing is imported. Commit makes every registered tool and hook visible, or none of them.

    Raises `ExtensionError`: no callable `setup`, an id that is empty or active already, a tool name that is
    given twice or taken, and use of a context after its commit or failure. (Chapter 12, Lab 12.4)
    """
    commit, _ = _INSIDES[host]
    if await _settled(is_trusted(source)) is not True:
        return ExtensionLoadResult(source.id, "skipped_untrusted")
    setup = getattr(await _settled(import_module(source)), "setup", None)
    if not callable(setup):
        raise ExtensionError(f"extension {source.id!r} has no setup that can be called")
    staged: _Staged = ([], [])
    with _staging_in(staged) as context:
        await _settled(setup(context))
    commit(source.id, staged)
    return ExtensionLoadResult(source.id, "active")


@contextlib.contextmanager
def _staging_in(staged: _Staged) -> Iterator[ExtensionContext]:
    """Give a context that stages, and close it however its setup ends."""
    is_open = True

    def need(condition: bool, complaint: str) -> None:
        if not (is_open and condition):
            raise ExtensionError(complaint if is_open else "the context is closed, as its setup is over")

    def register_tool(tool: ToolDefinition) -> None:
        need(isinstance(tool, ToolDefinition), f"a {type(tool).__name__} is no tool definition")
        staged[0].append(tool)

    def on(event: HookEvent, handler: _Handler) -> None:
        need(event in get_args(HookEvent), f"there is no event {event!r}")
        need(callable(handler), f"the handler of {event} can't be called")
        staged[1].append((event, handler))

    try:
        yield cast(ExtensionContext, SimpleNamespace(register_tool=register_tool, on=on))
    finally:
        is_open = False


async def _settled(value: object) -> Any:
    """Wait for what can be awaited; a cancellation that it swallows comes out all the same."""
    caller = asyncio.current_task()
    cancels = caller.cancelling() if caller else 0
    value = await value if inspect.isawaitable(value) else value
    if caller and caller.cancelling() > cancels:
        raise asyncio.CancelledError
    return value


def _plain(text: object) -> str:
    """Return a string of any subclass as an ordinary one."""
    if not isinstance(text, str):
        raise TypeError(f"expected a string, not a {type(text).__name__}")
    return str.__str__(text)
