"""The text resources and the extensions of a workspace: who wins, what is read when, what code may do."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeAlias

from pi_course.messages import ToolCall, ToolResultMessage, UserMessage
from pi_course.schema import ToolDefinition
from pi_course.tools import ToolExecutor, ToolRegistry


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
    # TODO(12.1): find, choose the winners, order, return the catalog.
    raise NotImplementedError("Lab 12.1 resource catalog 尚未实现")


async def activate_skill(
    catalog: ResourceCatalog, name: str, *, resources: Sequence[str] = ()
) -> ActivatedSkill:
    """Read the text of a skill of the catalog, and those files of its folder that are asked for.

    `resources` are paths relative to the skill's root; one that is asked for twice comes once.

    Raises `ResourceError`: a skill that the catalog doesn't have or that bears another name by now, and a
    request that is empty, absolute, missing, or leads out of the skill's root. (Chapter 12, Lab 12.2)
    """
    # TODO(12.2): read the skill anew, then each requested file that lies within its root.
    raise NotImplementedError("Lab 12.2 skill activation 尚未实现")


def render_template(template: TemplateResource, args: Mapping[str, str]) -> UserMessage:
    """Return the template's body as a user message, every `{{name}}` replaced by that argument.

    A name begins with a letter or an underscore and goes on with letters, digits and underscores; all other
    text stays as it is. Further arguments are ignored.

    Raises `ResourceError` that names a missing argument. (Chapter 12, Lab 12.3)
    """
    # TODO(12.3): fill the places.
    raise NotImplementedError("Lab 12.3 template and resource context 尚未实现")


def format_resource_context(catalog: ResourceCatalog, activated_skills: Sequence[ActivatedSkill]) -> str:
    """Return the text on resources for the system prompt.

    Sections, in this order: `# Pi resources`; the body of each instructions resource; a line
    `name: description` for every skill; for each activated skill, by name, its body, then the contents of
    its files. No section has newlines at its ends, and one blank line stands between two. Without
    instructions and skills the text is empty.

    Raises `ResourceError` for a skill that is activated twice or isn't of this catalog.
    (Chapter 12, Lab 12.3)
    """
    # TODO(12.3): check what is activated, then put the sections together.
    raise NotImplementedError("Lab 12.3 template and resource context 尚未实现")


class ExtensionHost:
    """The committed extensions around a tool registry."""

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        """Return an executor that lets the committed hooks take part in each call of `core`.

        Before hooks, in the order of registration, decide whether `core` runs: a deny, an exception, a
        timeout and an answer that is no decision all give an error result that is paired with the call
        (`details == {"extensionId": ..., "reason": ...}`). After hooks, in that order too, see its result.
        Faults of hooks are reported as `ExtensionDiagnostic`; one of an after hook changes nothing else.
        Hooks get frozen copies, the caller gets a copy of the result. (Chapter 12, Lab 12.5)
        """
        # TODO(12.4): as long as no hook is committed, call `core` once and pass its result through.
        # TODO(12.5): the before hooks, `core`, the after hooks.
        raise NotImplementedError("Lab 12.5 hook execution 尚未实现")


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
    # TODO(12.4): make the host.
    raise NotImplementedError("Lab 12.4 extension loading 尚未实现")


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
    # TODO(12.4): trust, import, setup, commit.
    raise NotImplementedError("Lab 12.4 extension loading 尚未实现")
