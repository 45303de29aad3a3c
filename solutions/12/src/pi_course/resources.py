"""The text resources and the extensions of a workspace: who wins, what is read when, what code may do."""

import asyncio
import contextlib
import inspect
import os
import re
import stat
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import yaml
from pi_course.messages import ToolCall, ToolResultMessage, UserMessage, user_message
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.tools import ToolExecutor, ToolRegistry, ToolRegistryError, error_result
from pi_course.values import JsonValue, clone, freeze


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


# --- Lab 12.1: the catalog ---
async def discover_resources(roots: Sequence[str | os.PathLike[str]]) -> ResourceCatalog:
    """Return what the roots offer; of two resources of one kind and name the earlier root's wins.

    Looks for `AGENTS.md`, `skills/<folder>/SKILL.md` and `templates/*.md` in each root. Order: instructions,
    skills, templates, then name by code point. A SKILL.md is read no further than its front matter may reach.
    Raises `ResourceError` for one identity twice in a root and what can't be used. Chapter 12, Lab 12.1.
    """
    return await asyncio.to_thread(_discover, [os.fspath(root) for root in roots])


def _discover(roots: list[str]) -> ResourceCatalog:
    winners: dict[tuple[str, str], Resource] = {}
    for configured in roots:
        root = _canonical(configured, configured)
        if not configured or not root.is_dir():  # an empty path would be the working directory
            raise ResourceError(configured, "a root is a folder")
        for identity, resource in _scan(root).items():
            winners.setdefault(identity, resource)
    kinds = ("instructions", "skill", "template")
    resources = sorted(winners.values(), key=lambda each: (kinds.index(each.kind), each.name))
    return ResourceCatalog(
        resources,
        [clone(each) for each in resources if isinstance(each, InstructionsResource)],
        [clone(each) for each in resources if isinstance(each, SkillResource)],
        [clone(each) for each in resources if isinstance(each, TemplateResource)],
    )


def _scan(root: Path) -> dict[tuple[str, str], Resource]:
    """Return the resources of one root by identity."""
    found: dict[tuple[str, str], Resource] = {}
    resources: list[Resource] = [*_instructions(root), *_skills(root), *_templates(root)]
    for resource in resources:
        first = found.setdefault((resource.kind, resource.name), resource)
        if first is not resource:
            raise ResourceError(resource.source, f"the same {resource.kind} as {first.source}")
    return found


def _instructions(root: Path) -> Iterator[InstructionsResource]:
    path = root / "AGENTS.md"
    if _is_present(path):
        source = _contained(root, path, str(path))
        yield InstructionsResource("AGENTS", str(source), str(root), _read_text(source))


def _skills(root: Path) -> Iterator[SkillResource]:
    for entry in _entries(root / "skills"):
        folder = _canonical(entry, str(entry))
        path = folder / "SKILL.md"
        if folder.is_dir() and _is_present(path):  # a README may lie beside the skills
            source = _contained(folder, path, str(path))
            head = _read_bytes(source, _FRONT_MATTER_LIMIT + len(b"\r\n"))
            name, description, _ = _parse_skill(head, str(source))
            yield SkillResource(name, description, str(source), str(folder))


def _templates(root: Path) -> Iterator[TemplateResource]:
    for entry in _entries(root / "templates"):
        if entry.suffix != ".md" or entry.name.startswith("."):
            continue
        path = _contained(root, entry, str(entry))
        source = str(path)
        front, body = _split(_read_bytes(path), source)
        description = (front or {}).get("description")
        if not isinstance(description, str | None):
            raise ResourceError(source, "the description in the front matter is no string")
        yield TemplateResource(entry.stem, source, str(root), _decode(body, source), description or "")


# --- files: everything that touches the disk ---
@contextlib.contextmanager
def _blaming(source: str) -> Iterator[None]:
    """Turn what reading a file can raise into a `ResourceError` about `source`."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: bad UTF-8, a NUL byte in a path
        raise ResourceError(source, getattr(error, "strerror", None) or str(error)) from error


def _is_present(path: Path) -> bool:
    """Tell a missing file from one that can't be looked at; a dangling link is there."""
    with _blaming(str(path)), contextlib.suppress(FileNotFoundError):
        path.lstat()
        return True
    return False


def _entries(folder: Path) -> list[Path]:
    """Return what a folder holds, by name; nothing where there is no such folder."""
    with _blaming(str(folder)):
        return sorted(folder.iterdir()) if _is_present(folder) else []


def _canonical(path: str | Path, about: str) -> Path:
    with _blaming(about):
        return Path(os.path.realpath(path, strict=True))


def _contained(root: Path, path: Path, about: str) -> Path:
    """Return the canonical path of a file, which must lie under the canonical `root`."""
    real = _canonical(path, about)
    if not real.is_relative_to(root):
        raise ResourceError(about, f"lies outside {root}")
    return real


def _read_bytes(path: Path, limit: int = -1) -> bytes:
    with _blaming(str(path)):
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait, a device may never end
            raise ResourceError(str(path), "not a regular file")
        with path.open("rb") as file:
            return file.read(limit)


def _decode(data: bytes, source: str) -> str:
    with _blaming(source):
        return data.decode().replace("\r\n", "\n")


def _read_text(path: Path) -> str:
    return _decode(_read_bytes(path).removeprefix(_BOM), str(path))


# --- front matter ---
_BOM = b"\xef\xbb\xbf"
_FRONT_MATTER_LIMIT = 64 * 1024  # bytes, from the file's first to the closing dashes
# Bytes, because a prefix may end within a character; `^` and `$` of bytes know no line end but "\n".
_FRONT_MATTER = re.compile(
    rb"(?sm)\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?P<yaml>.*?)^(?P<close>---[ \t]*)\r?(?:\n|\Z)"
)


class _FrontMatterLoader(yaml.SafeLoader):
    """Safe YAML whose keys have one value: no doubles, and no merge keys, whose cost can explode."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys) or any(tag == "tag:yaml.org,2002:merge" for tag, _ in keys):
            raise yaml.MarkedYAMLError(problem="duplicate or merge key", problem_mark=node.start_mark)


def _split(data: bytes, source: str) -> tuple[dict[str, object] | None, bytes]:
    """Part closed front matter from what follows; without any it is None and the rest is all but the BOM."""
    match = _FRONT_MATTER.match(data)
    if match is None:
        return None, data.removeprefix(_BOM)
    if match.end("close") > _FRONT_MATTER_LIMIT:
        raise ResourceError(source, "front matter longer than 64 KiB")
    text = _decode(match["yaml"], source)
    try:
        front = yaml.load(text, Loader=_FrontMatterLoader)
    except Exception as error:  # not only YAMLError: a bad date is a ValueError, `!!bool x` a KeyError
        raise ResourceError(source, f"malformed front matter: {error}") from error
    if not isinstance(front, dict | None):
        raise ResourceError(source, "front matter is no mapping")
    return front or {}, data[match.end() :]


def _parse_skill(data: bytes, source: str) -> tuple[str, str, bytes]:
    """Return name, description and body of a SKILL.md, or of its beginning."""
    front, body = _split(data, source)
    if front is None:
        raise ResourceError(source, "no front matter that is closed within 64 KiB")
    name, description = front.get("name"), front.get("description")
    if not (isinstance(name, str) and isinstance(description, str) and name.strip() and description.strip()):
        raise ResourceError(source, "name and description in the front matter must be non-empty strings")
    return name, description, body


# --- Lab 12.2: activation ---
async def activate_skill(
    catalog: ResourceCatalog, name: str, *, resources: Sequence[str] = ()
) -> ActivatedSkill:
    """Read a skill of the catalog, and the files of its folder that are asked for.

    `resources` are paths relative to the skill's root; each is read once, in the order of first mention.
    Raises `ResourceError` for a skill that is unknown or changed its name, and for requests that are empty,
    absolute, missing, no file, or lead out of the root, where nothing is opened. Chapter 12, Lab 12.2.
    """
    for skill in catalog.skills:
        if skill.name == name:
            return await asyncio.to_thread(_activate, clone(skill), list(dict.fromkeys(resources)))
    raise ResourceError(name, "no skill of this name in the catalog")


def _activate(skill: SkillResource, requests: list[str]) -> ActivatedSkill:
    root = Path(skill.root)
    source = _contained(root, Path(skill.source), skill.source)
    name, description, body = _parse_skill(_read_bytes(source), str(source))
    if name != skill.name:
        raise ResourceError(str(source), f"{skill.name!r} in the catalog, {name!r} in the file")
    files = [_read_request(root, request) for request in requests]
    return ActivatedSkill(name, description, str(source), skill.root, _decode(body, str(source)), files)


def _read_request(root: Path, request: str) -> SkillFile:
    if not request or "\0" in request or Path(request).anchor:
        raise ResourceError(request, "a request is a path relative to the skill's root")
    path = Path(os.path.normpath(root / request))
    if not path.is_relative_to(root):
        raise ResourceError(request, "leads out of the skill's root")
    source = _contained(root, path, request)
    return SkillFile(request, str(source), _read_text(source))


# --- Lab 12.3: templates and the system prompt ---
_PLACE = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")


def render_template(template: TemplateResource, args: Mapping[str, str]) -> UserMessage:
    """Return the template's body as a user message, each `{{name}}` replaced once and literally.

    Raises `ResourceError` that names a missing argument; further arguments are ignored. Chapter 12, Lab 12.3.
    """

    def fill(place: re.Match[str]) -> str:
        if place[1] not in args:
            raise ResourceError(template.source, f"the argument {place[1]!r} is missing")
        return args[place[1]]

    return user_message(_PLACE.sub(fill, template.body))


def format_resource_context(catalog: ResourceCatalog, activated_skills: Sequence[ActivatedSkill]) -> str:
    """Return the system prompt's part on resources; `""` where there is nothing to tell.

    Sections, without newlines at their ends and with one blank line between them: a heading, the
    instructions, `name: description` of every skill, then body and files of each activated skill, by name.
    Raises `ResourceError` for a skill activated twice or not of this catalog. Chapter 12, Lab 12.3.
    """
    free = {(skill.name, skill.source) for skill in catalog.skills}
    for skill in activated_skills:
        if (skill.name, skill.source) not in free:
            raise ResourceError(skill.source, "not a skill of this catalog, or activated twice")
        free.remove((skill.name, skill.source))
    if not (catalog.instructions or catalog.skills):
        return ""
    sections = ["# Pi resources"]
    sections += [each.body for each in catalog.instructions]
    sections += [f"{each.name}: {each.description}" for each in catalog.skills]
    for skill in sorted(activated_skills, key=lambda each: each.name):
        sections += [skill.body, *(file.content for file in skill.resources)]
    trimmed = [section.strip("\n") for section in sections]
    return "\n\n".join(section for section in trimmed if section)


# --- Lab 12.4: trust and registration ---
@dataclass(frozen=True)
class _Hook:
    extension_id: str
    event: HookEvent
    handler: Callable[[Any], object]


class _HookFault(Exception):
    """A hook that failed, and how."""

    def __init__(self, kind: Literal["error", "timeout"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _StagingContext(ExtensionContext):
    """What one extension asked for and the host has not yet taken over."""

    def __init__(self, extension_id: str) -> None:
        self._extension_id = extension_id
        self._tools: list[ToolDefinition] = []
        self._hooks: list[_Hook] = []
        self._open = True

    def register_tool(self, tool: ToolDefinition) -> None:
        self._require(self._open, "the context is closed: registration ends with setup")
        self._require(isinstance(tool, ToolDefinition), f"{tool!r} is no ToolDefinition")
        self._tools.append(tool)

    def on(self, event: HookEvent, handler: BeforeToolCall | AfterToolResult) -> None:
        self._require(self._open, "the context is closed: registration ends with setup")
        self._require(event in ("before_tool_call", "after_tool_result"), f"there is no event {event!r}")
        self._require(callable(handler), f"the handler {handler!r} can't be called")
        self._hooks.append(_Hook(self._extension_id, event, handler))

    def _require(self, condition: bool, otherwise: str) -> None:
        if not condition:
            raise ExtensionError(f"extension {self._extension_id!r}: {otherwise}")


class ExtensionHost:
    """The committed extensions around a tool registry."""

    def __init__(self, registry: ToolRegistry, timeout: float, observe: Callable[..., None] | None) -> None:
        self._registry = registry
        self._timeout = timeout
        self._observe = observe
        self._ids: set[str] = set()
        self._hooks: tuple[_Hook, ...] = ()

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        """Return an executor that asks the before hooks, runs `core` if all allow, and tells the after hooks.

        A deny, a before hook's fault and its timeout give a paired error result instead, without `core`; an
        after hook's fault is only a diagnostic. The hooks are those committed when a call starts. What `core`
        raises comes out. A timeout ends the host's waiting, not the hook's code; a plain hook that blocks the
        event loop can't be timed out at all. Chapter 12, Lab 12.5.
        """

        async def execute(call: ToolCall, context: ToolContext) -> ToolResultMessage:
            hooks, call = self._hooks, clone(call)
            blocked = await self._before(hooks, call)
            if blocked is not None:
                return blocked
            result = clone(await core(call, context))
            await self._after(hooks, result)
            return result

        return execute

    def _commit(self, staging: _StagingContext) -> None:
        """Make all that was staged visible, or nothing; there is no await, so nobody sees a part of it."""
        extension_id = staging._extension_id
        staging._require(isinstance(extension_id, str) and extension_id != "", "an id is a non-empty string")
        staging._require(extension_id not in self._ids, "an extension of this id is active")
        try:
            self._registry.register(*staging._tools)
        except ToolRegistryError as error:
            raise ExtensionError(f"extension {extension_id!r}: {error}") from error
        self._hooks += tuple(staging._hooks)
        self._ids.add(extension_id)

    async def _before(self, hooks: tuple[_Hook, ...], call: ToolCall) -> ToolResultMessage | None:
        """Return the result that stands in for the call, or None if every hook allows it."""
        for hook in [hook for hook in hooks if hook.event == "before_tool_call"]:
            try:
                refusal = _refusal(await _ask(hook, freeze(call), self._timeout))
            except _HookFault as fault:
                refusal = str(fault)
                self._report(hook, fault)
            if refusal is not None:
                text = f"Blocked by extension {hook.extension_id}: {refusal}"
                details: JsonValue = {"extensionId": hook.extension_id, "reason": refusal}
                return error_result(call, text, details=details)
        return None

    async def _after(self, hooks: tuple[_Hook, ...], result: ToolResultMessage) -> None:
        for hook in [hook for hook in hooks if hook.event == "after_tool_result"]:
            try:
                await _ask(hook, freeze(result), self._timeout)
            except _HookFault as fault:
                self._report(hook, fault)

    def _report(self, hook: _Hook, fault: _HookFault) -> None:
        if self._observe is None:
            return
        diagnostic = ExtensionDiagnostic(hook.extension_id, hook.event, fault.kind, str(fault))
        with contextlib.suppress(Exception, asyncio.CancelledError):  # what it raises changes no verdict
            self._observe(diagnostic)


def create_extension_host(
    registry: ToolRegistry,
    *,
    hook_timeout: float = 5.0,
    on_diagnostic: Callable[[ExtensionDiagnostic], None] | None = None,
) -> ExtensionHost:
    """Return a host for a registry; `hook_timeout` is in seconds, for one hook. Chapter 12, Lab 12.4."""
    if not hook_timeout > 0:
        raise ValueError(f"hook_timeout must be a positive number of seconds, not {hook_timeout!r}")
    return ExtensionHost(registry, hook_timeout, on_diagnostic)


async def load_extension(
    source: ExtensionSource,
    *,
    host: ExtensionHost,
    is_trusted: Callable[[ExtensionSource], bool | Awaitable[bool]],
    import_module: Callable[[ExtensionSource], object],
) -> ExtensionLoadResult:
    """Ask for trust, import, run the module's `setup(context)`, then commit all that it registered.

    The callables and `setup` are plain or async, and what they raise comes out. Only True is trust; without
    it nothing is imported. Raises `ExtensionError` for a module without `setup`, an id that is taken
    and tools that can't be registered; registry, hooks and ids are then as before. Chapter 12, Lab 12.4.
    """
    if await _settle(is_trusted(source)) is not True:
        return ExtensionLoadResult(source.id, "skipped_untrusted")
    module = await _settle(import_module(source))
    setup = getattr(module, "setup", None)
    if not callable(setup):
        raise ExtensionError(f"extension {source.id!r}: the module has no callable setup")
    context = _StagingContext(source.id)
    try:
        await _settle(setup(context))
        host._commit(context)
    finally:
        context._open = False
    return ExtensionLoadResult(source.id, "active")


async def _settle(value: object) -> object:
    """Return what a plain or async callable gave, once it is there."""
    return await value if inspect.isawaitable(value) else value


# The event loop holds tasks weakly: a hook that outlives its timeout could be destroyed while pending.
_running_hooks: set[asyncio.Task[object]] = set()


async def _ask(hook: _Hook, value: object, timeout: float) -> object:
    """Return the hook's answer or raise `_HookFault`; the hook runs in a task that nobody has to wait for."""

    async def run() -> object:
        return await _settle(hook.handler(value))

    task = asyncio.create_task(run())
    _running_hooks.add(task)
    task.add_done_callback(_let_go)
    try:
        await asyncio.wait({task}, timeout=timeout)
    finally:
        task.cancel()  # nothing happens to a task that is done
    if not task.done():
        raise _HookFault("timeout", f"{hook.event} hook gave no answer within {timeout} s")
    if task.cancelled():
        raise _HookFault("error", f"{hook.event} hook raised CancelledError")
    error = task.exception()
    if isinstance(error, Exception):
        text = "".join(traceback.format_exception_only(error)).strip()
        raise _HookFault("error", f"{hook.event} hook raised {text}") from error
    return task.result()


def _let_go(task: asyncio.Task[object]) -> None:
    _running_hooks.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved: nobody waits for a late one


def _refusal(answer: object) -> str | None:
    """Return why a before hook's answer forbids the call, or None where it allows it."""
    if isinstance(answer, HookDecision) and isinstance(answer.reason, str):
        if answer.decision == "allow":
            return None
        if answer.decision == "deny":
            return str.__str__(answer.reason)  # a plain string, as JSON has it, of a StrEnum's member too
    raise _HookFault("error", f"before_tool_call hook answered neither allow nor deny, but {type(answer)}")
