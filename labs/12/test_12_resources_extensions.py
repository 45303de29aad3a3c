"""Chapter 12: text resources enter the context on demand, code passes the trust gate first."""

import asyncio
import dataclasses
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pi_course import resources
from pi_course.context import build_context
from pi_course.messages import TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.session import MessageEntry
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry

T = TypeVar("T")


# --- files of the running example ------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    """Write a file, folders and all, without touching its line ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def write_skill(root: Path, folder: str, name: str, description: str, body: str) -> Path:
    """Write a SKILL.md whose name need not be its folder's."""
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}"
    return write(root / "skills" / folder / "SKILL.md", text)


def write_project(root: Path) -> Path:
    """The project of the chapter: rules, the review skill with its checklist, the review template."""
    write(root / "AGENTS.md", "PROJECT RULES\n")
    write_skill(root, "review", "review", "project review", "Read the diff first.\n")
    write(root / "skills" / "review" / "references" / "checklist.md", "tests\nsecurity\n")
    write(root / "templates" / "review.md", "Review {{target}} for {{owner}}")
    return root


def write_user(root: Path) -> Path:
    """The user's own folder: a skill and a template of the same names, and one skill more."""
    write_skill(root, "my-review", "review", "user review", "USER BODY\n")
    write_skill(root, "notes", "notes", "user notes", "NOTES BODY\n")
    write(root / "templates" / "review.md", "User review of {{target}}")
    return root


def plain(value: Any) -> Any:
    """The value as data, to compare or to search it as a whole."""
    return dataclasses.asdict(value)


# --- Lab 12.1 --------------------------------------------------------------------------------------------


@pytest.mark.lab12
@pytest.mark.lab12_1
async def test_the_first_root_wins_for_each_kind_and_name(tmp_path: Path) -> None:
    """Of two resources of one kind and name the earlier root's wins; twice in one root is an error."""
    # The folders' names sort against the order of the roots, whichever way round that is.
    for first, second in (("z-project", "a-user"), ("a-project", "z-user")):
        project, user = write_project(tmp_path / first), write_user(tmp_path / second)

        catalog = await resources.discover_resources([project, user])
        assert {skill.name: skill.description for skill in catalog.skills} == {
            "review": "project review",
            "notes": "user notes",
        }
        assert [template.body for template in catalog.templates] == ["Review {{target}} for {{owner}}"]
        assert [each.body for each in catalog.instructions] == ["PROJECT RULES\n"]
        winner = next(skill for skill in catalog.skills if skill.name == "review")
        assert winner.source == os.path.realpath(project / "skills" / "review" / "SKILL.md")
        assert winner.root == os.path.realpath(project / "skills" / "review")

        swapped = await resources.discover_resources([str(user), str(project)])
        assert {skill.name: skill.description for skill in swapped.skills} == {
            "review": "user review",
            "notes": "user notes",
        }
        assert [template.body for template in swapped.templates] == ["User review of {{target}}"]
        assert [each.body for each in swapped.instructions] == ["PROJECT RULES\n"]
        # A skill and a template may share a name: identity is the kind and the name.
        for found in (catalog, swapped):
            assert sorted((each.kind, each.name) for each in found.resources) == [
                ("instructions", "AGENTS"),
                ("skill", "notes"),
                ("skill", "review"),
                ("template", "review"),
            ]

    clash = tmp_path / "clash"
    one = write_skill(clash, "one", "review", "first", "")
    two = write_skill(clash, "two", "review", "second", "")
    with pytest.raises(resources.ResourceError) as caught:
        await resources.discover_resources([clash])
    assert os.path.realpath(one) in str(caught.value)
    assert os.path.realpath(two) in str(caught.value)


@pytest.mark.lab12
@pytest.mark.lab12_1
async def test_the_catalog_is_ordered_by_logical_name_and_holds_no_skill_text(tmp_path: Path) -> None:
    """The catalog lists kinds, then logical names, the same every time, and of skills only metadata."""
    root = tmp_path / "root"
    write(root / "AGENTS.md", "RULES")
    # Folder names sort the other way round than the names in the front matter.
    for folder, name in (("a", "zeta"), ("b", "mid"), ("c", "alpha"), ("d", "Zeta"), ("e", "éclair")):
        write_skill(root, folder, name, f"about {name}", f"INACTIVE MARKER {name}\n")
    write(root / "templates" / "two.md", "two")
    write(root / "templates" / "one.md", "one")
    later = tmp_path / "0-later"
    write_skill(later, "x", "beta", "about beta", "INACTIVE MARKER beta\n")

    catalog = await resources.discover_resources([root, later])
    assert [(each.kind, each.name) for each in catalog.resources] == [
        ("instructions", "AGENTS"),
        ("skill", "Zeta"),
        ("skill", "alpha"),
        ("skill", "beta"),
        ("skill", "mid"),
        ("skill", "zeta"),
        ("skill", "éclair"),
        ("template", "one"),
        ("template", "two"),
    ]
    assert [*catalog.instructions, *catalog.skills, *catalog.templates] == catalog.resources
    assert await resources.discover_resources([root, later]) == catalog
    assert "INACTIVE MARKER" not in json.dumps(plain(catalog), ensure_ascii=False)
    assert not any(hasattr(skill, "body") for skill in catalog.skills)
    assert [skill.description for skill in catalog.skills[:2]] == ["about Zeta", "about alpha"]

    # The views are copies: what is done to one doesn't reach the other.
    catalog.skills[0].description = "changed"
    catalog.instructions[0].body = "changed"
    assert catalog.resources[1].description == "about Zeta"
    assert catalog.resources[0].body == "RULES"


# --- Lab 12.2 --------------------------------------------------------------------------------------------


@pytest.mark.lab12
@pytest.mark.lab12_2
async def test_activation_reads_the_body_and_leaves_the_catalog_alone(tmp_path: Path) -> None:
    """Activation reads the text anew, checks that it is still the same skill, and changes no catalog."""
    project, user = write_project(tmp_path / "project"), write_user(tmp_path / "user")
    catalog = await resources.discover_resources([project, user])
    before = plain(catalog)

    review = await resources.activate_skill(catalog, "review")
    source = os.path.realpath(project / "skills" / "review" / "SKILL.md")
    assert (review.name, review.description) == ("review", "project review")
    assert (review.source, review.root) == (source, str(Path(source).parent))
    assert review.body == "Read the diff first.\n"
    assert review.resources == []
    assert plain(catalog) == before

    # The result is the caller's own.
    review.body = review.description = "changed"
    assert plain(catalog) == before
    assert not any(hasattr(skill, "body") for skill in catalog.skills)

    # What counts is the file as it is at activation, and another name makes it another skill.
    write_skill(project, "review", "review", "project review", "Read the tests first.\n")
    assert (await resources.activate_skill(catalog, "review")).body == "Read the tests first.\n"
    write_skill(project, "review", "audit", "project review", "Read the diff first.\n")
    for name in ("review", "audit", "my-review"):
        with pytest.raises(resources.ResourceError):
            await resources.activate_skill(catalog, name)
    assert (await resources.activate_skill(catalog, "notes")).body == "NOTES BODY\n"
    assert plain(catalog) == before


@pytest.mark.lab12
@pytest.mark.lab12_2
async def test_requested_files_come_once_each_with_their_canonical_source(tmp_path: Path) -> None:
    """Each requested file comes once, in order, as requested, from where it really lies, with its text."""
    project = write_project(tmp_path / "project")
    skill = project / "skills" / "review"
    write(skill / "scripts" / "run.txt", "run")
    write(skill / "shared" / "deep" / "style.md", "style\n")
    (skill / "style").symlink_to(Path("shared", "deep"), target_is_directory=True)
    (skill / "references" / "latest.md").symlink_to("checklist.md")
    catalog = await resources.discover_resources([project])

    requests = [
        "scripts/run.txt",
        "references/checklist.md",
        "style/style.md",
        "references/checklist.md",
        "references/latest.md",
        "scripts/run.txt",
    ]
    review = await resources.activate_skill(catalog, "review", resources=requests)

    root = Path(os.path.realpath(skill))
    assert [(file.request, file.source, file.content) for file in review.resources] == [
        ("scripts/run.txt", str(root / "scripts" / "run.txt"), "run"),
        ("references/checklist.md", str(root / "references" / "checklist.md"), "tests\nsecurity\n"),
        ("style/style.md", str(root / "shared" / "deep" / "style.md"), "style\n"),
        ("references/latest.md", str(root / "references" / "checklist.md"), "tests\nsecurity\n"),
    ]
    assert review.body == "Read the diff first.\n"
    assert [file.request for file in (await resources.activate_skill(catalog, "review")).resources] == []


@pytest.mark.lab12
@pytest.mark.lab12_2
async def test_requests_that_lead_out_of_the_skill_are_refused(tmp_path: Path) -> None:
    """A request that is absolute or leads out of the skill by dots, a symlink or a like name is refused."""
    project = write_project(tmp_path / "project")
    skill = project / "skills" / "review"
    outside = write(tmp_path / "outside.md", "OUTSIDE")
    write(project / "skills" / "review-old" / "secret.md", "OLD")
    (skill / "link.md").symlink_to(outside)
    (skill / "folder").symlink_to(tmp_path, target_is_directory=True)
    (skill / "old").symlink_to(Path("..", "review-old"), target_is_directory=True)
    catalog = await resources.discover_resources([project])
    inside = os.path.realpath(skill / "references" / "checklist.md")

    refused = {
        "dots": "../../../outside.md",
        "dots behind a folder": "references/../../../AGENTS.md",
        "like name": "../review-old/secret.md",
        "absolute": str(outside),
        "absolute, though inside": inside,
        "link to a file": "link.md",
        "link to a folder": "folder/outside.md",
        "link to a like name": "old/secret.md",
        "empty": "",
        "missing": "references/missing.md",
        "folder itself": "references",
    }
    accepted = []
    for what, request in refused.items():
        try:
            await resources.activate_skill(catalog, "review", resources=["references/checklist.md", request])
        except resources.ResourceError:
            continue
        accepted.append(what)
    assert accepted == []

    # The same holds for the skill's own file, if a link takes it away after discovery.
    write_skill(tmp_path / "elsewhere", "review", "review", "project review", "ELSEWHERE")
    (skill / "SKILL.md").unlink()
    (skill / "SKILL.md").symlink_to(tmp_path / "elsewhere" / "skills" / "review" / "SKILL.md")
    with pytest.raises(resources.ResourceError):
        await resources.activate_skill(catalog, "review")


# --- Lab 12.3 --------------------------------------------------------------------------------------------


@pytest.mark.lab12
@pytest.mark.lab12_3
def test_a_template_becomes_a_user_message_with_every_place_filled() -> None:
    """Every `{{name}}` is replaced once and literally, a missing argument is named, the rest stays."""

    def template(body: str) -> Any:
        return resources.TemplateResource("review", "/t/review.md", "/t", body)

    fixed = template("Review {{target}}; then test {{target}} for {{owner}}.")
    message = resources.render_template(
        fixed, {"target": "src/parser.ts", "owner": "runtime", "ignored": "extra"}
    )
    assert isinstance(message, UserMessage)
    assert message.role == "user"
    assert message.content == [TextContent("Review src/parser.ts; then test src/parser.ts for runtime.")]
    assert type(message.timestamp) is int
    assert fixed.body == "Review {{target}}; then test {{target}} for {{owner}}."

    for args, missing in (({"target": "x"}, "owner"), ({"owner": "x"}, "target"), ({}, "target")):
        with pytest.raises(resources.ResourceError) as caught:
            resources.render_template(fixed, args)
        assert missing in str(caught.value)

    # Only this shape is a place; all other braces are text.
    kept = "{{ target }} {{1x}} {target} {{}} {{a-b}} {{a.b}} {{tärget}} {{target} $target \\1 %s\n"
    assert resources.render_template(template(kept), {"target": "x"}).content == [TextContent(kept)]
    shapes = resources.render_template(
        template("{{_a}}|{{A1_b}}|{{{_a}}}|{{_a}}{{_a}}"), {"_a": "1", "A1_b": "2"}
    )
    assert shapes.content == [TextContent("1|2|{1}|11")]

    # A value is text too, whatever it looks like.
    odd = resources.render_template(
        template("{{a}} {{b}} {{c}}"), {"a": "{{b}}", "b": r"\1 \g<0> $1", "c": "{{missing}} {{a}}"}
    )
    assert odd.content == [TextContent(r"{{b}} \1 \g<0> $1 {{missing}} {{a}}")]


@pytest.mark.lab12
@pytest.mark.lab12_3
async def test_the_resource_context_is_the_system_prompt_of_chapter_11(tmp_path: Path) -> None:
    """Rules, all metadata and the active skills' text make one string, which build_context takes as it is."""
    project = write_project(tmp_path / "project")
    example = await resources.discover_resources([project])
    review = await resources.activate_skill(example, "review", resources=["references/checklist.md"])
    system_prompt = resources.format_resource_context(example, [review])
    assert system_prompt == (
        "# Pi resources\n\nPROJECT RULES\n\nreview: project review\n\nRead the diff first.\n\ntests\nsecurity"
    )

    message = resources.render_template(example.templates[0], {"target": "src/parser.ts", "owner": "runtime"})
    projection = build_context(
        [MessageEntry("entry-1", None, message.timestamp, message)],
        max_tokens=20,
        system_prompt=system_prompt,
        reserved_output=2,
        safety_margin=1,
        estimate_tokens=lambda value: 1,
    )
    assert projection.system_prompt == system_prompt
    assert projection.messages == [message]

    write_skill(project, "audit", "audit", "project audit", "\nAUDIT BODY\n\n")
    catalog = await resources.discover_resources([project, write_user(tmp_path / "user")])
    metadata = "audit: project audit\n\nnotes: user notes\n\nreview: project review"
    assert resources.format_resource_context(catalog, []) == f"# Pi resources\n\nPROJECT RULES\n\n{metadata}"
    active = [await resources.activate_skill(catalog, name) for name in ("review", "audit")]
    assert resources.format_resource_context(catalog, active) == (
        f"# Pi resources\n\nPROJECT RULES\n\n{metadata}\n\nAUDIT BODY\n\nRead the diff first."
    )
    empty = resources.ResourceCatalog(resources=[], instructions=[], skills=[], templates=[])
    assert resources.format_resource_context(empty, []) == ""

    # The same name from another catalog is another skill: here it is the project's that won.
    user_catalog = await resources.discover_resources([tmp_path / "user"])
    other = await resources.activate_skill(user_catalog, "review")
    for wrong in ([active[0], active[0]], [other], [active[1], other]):
        with pytest.raises(resources.ResourceError):
            resources.format_resource_context(catalog, wrong)


# --- extensions, tools and calls -------------------------------------------------------------------------


def note() -> ToolCall:
    """The call of the chapter's example."""
    return ToolCall("note-1", "review_note", {"text": "parser is stable", "tags": ["parser"]})


def tool(name: str) -> ToolDefinition:
    """A tool that does nothing."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> str:
        return "noted"

    return ToolDefinition(name, f"the tool {name}", {"type": "object"}, execute)


class Core:
    """A core executor that keeps what it was given and what it gave."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.results: list[ToolResultMessage] = []

    async def __call__(self, call: ToolCall, context: ToolContext) -> ToolResultMessage:
        self.calls.append(call)
        content = [TextContent("noted")]
        result = ToolResultMessage(call.id, call.name, content, False, 1, details={"lines": [1, 2]})
        self.results.append(result)
        return result


async def run(host: Any, core: Core, call: ToolCall) -> Any:
    """Execute one call through the host, in bounded time."""
    return await within(host.wrap_executor(core)(call, ToolContext(AbortController().signal)))


async def load(host: Any, extension_id: str, setup: Callable[[Any], object]) -> Any:
    """Load a trusted extension whose module has this setup."""
    return await resources.load_extension(
        resources.ExtensionSource(extension_id, f"extensions/{extension_id}.py"),
        host=host,
        is_trusted=lambda source: True,
        import_module=lambda source: SimpleNamespace(setup=setup),
    )


async def within(awaitable: Awaitable[T], seconds: float = 5.0) -> T:
    """What the awaitable gives, or a failure if it is still not there after that time."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        pytest.fail(f"still waiting after {seconds} s")
    return task.result()


# --- Lab 12.4 --------------------------------------------------------------------------------------------


class Loading:
    """The callables of one load, and a record of each step with the tools that were visible then."""

    def __init__(self, verdict: object, *, form: str) -> None:
        self.registry = ToolRegistry()
        self.steps: list[tuple[str, list[str]]] = []
        self.sources: list[Any] = []
        self._verdict = verdict
        self._form = form

    async def load(self, source: Any) -> Any:
        host = resources.create_extension_host(self.registry)
        return await resources.load_extension(
            source, host=host, is_trusted=self._is_trusted, import_module=self._import_module
        )

    def step(self, what: str) -> None:
        self.steps.append((what, self.registry.names()))

    def _is_trusted(self, source: Any) -> Any:
        self.step("trust")
        self.sources.append(source)
        return self._answer(self._verdict)

    def _import_module(self, source: Any) -> Any:
        self.step("import")
        self.sources.append(source)
        return self._answer(SimpleNamespace(setup=self._setup))

    def _setup(self, context: Any) -> Any:
        context.register_tool(tool("review_note"))
        context.register_tool(tool("review_list"))
        context.on("after_tool_result", lambda result: None)
        self.step("factory")
        return self._answer(None)

    def _answer(self, value: object) -> Any:
        async def later() -> object:
            return value

        return later() if self._form == "async" else value


@pytest.mark.lab12
@pytest.mark.lab12_4
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_trust_comes_before_import_and_commit_comes_last() -> None:
    """Loading asks for trust, imports, runs setup, then commits; without trust it does nothing but ask."""
    source = resources.ExtensionSource("review-extension", "extensions/review_extension.py")
    for form in ("plain", "async"):
        for verdict in (False, None, 0, "yes", 1, [False]):  # some would pass for true in an `if`
            refused = Loading(verdict, form=form)
            outcome = await refused.load(source)
            assert [what for what, _ in refused.steps] == ["trust"], (form, verdict)
            assert outcome == resources.ExtensionLoadResult("review-extension", "skipped_untrusted")
            assert refused.registry.names() == []

        loading = Loading(True, form=form)
        outcome = await loading.load(source)
        loading.step("commit visible")
        assert [what for what, _ in loading.steps] == ["trust", "import", "factory", "commit visible"], form
        assert [names for _, names in loading.steps] == [[], [], [], ["review_note", "review_list"]], form
        assert outcome == resources.ExtensionLoadResult("review-extension", "active")
        assert loading.sources == [source, source]


@pytest.mark.lab12
@pytest.mark.lab12_4
async def test_a_failed_extension_leaves_no_tool_no_hook_and_no_id() -> None:
    """If setup raises or a name conflicts, registry, hooks and ids stay as they were."""
    registry = ToolRegistry()
    registry.register(tool("taken"))
    host = resources.create_extension_host(registry)
    failure = RuntimeError("setup failed")
    hook_calls: list[object] = []

    def staging(*names: str, error: Exception | None = None) -> Callable[[Any], None]:
        def setup(context: Any) -> None:
            context.on("before_tool_call", hook_calls.append)
            context.on("after_tool_result", hook_calls.append)
            for name in names:
                context.register_tool(tool(name))
            if error is not None:
                raise error

        return setup

    with pytest.raises(RuntimeError) as caught:
        await load(host, "review", staging("review_note", error=failure))
    assert caught.value is failure
    assert registry.names() == ["taken"]
    for names in (["review_note", "taken"], ["taken", "review_note"], ["review_note", "review_note"]):
        with pytest.raises(resources.ExtensionError):
            await load(host, "review", staging(*names))
        assert registry.names() == ["taken"]
    with pytest.raises(resources.ExtensionError):
        await load(host, "", staging("review_note"))
    for no_setup in (SimpleNamespace(), SimpleNamespace(setup="not callable")):
        with pytest.raises(resources.ExtensionError):
            await resources.load_extension(
                resources.ExtensionSource("review", "review.py"),
                host=host,
                is_trusted=lambda source: True,
                import_module=lambda source, module=no_setup: module,
            )
    assert registry.names() == ["taken"]

    # None of the staged hooks takes part in a call; without committed hooks a call just passes through.
    core = Core()
    result = await run(host, core, note())
    assert hook_calls == []
    assert core.calls == [note()]
    assert [result] == core.results

    # The id is still free, once.
    outcome = await load(host, "review", lambda context: context.register_tool(tool("fine")))
    assert outcome.status == "active"
    with pytest.raises(resources.ExtensionError):
        await load(host, "review", lambda context: context.register_tool(tool("again")))
    assert registry.names() == ["taken", "fine"]


# --- Lab 12.5 --------------------------------------------------------------------------------------------


def hooks(**handlers: Callable[[Any], Any] | list[Callable[[Any], Any]]) -> Callable[[Any], None]:
    """A setup that registers handlers by event, in the order given."""

    def setup(context: Any) -> None:
        for event, given in handlers.items():
            for handler in given if isinstance(given, list) else [given]:
                context.on(event, handler)

    return setup


@pytest.mark.lab12
@pytest.mark.lab12_5
async def test_a_denied_call_gets_a_paired_result_and_goes_no_further() -> None:
    """A deny gives a paired error result in place of the call; no later hook, no core, no after hook runs."""
    seen: list[str] = []
    diagnostics: list[Any] = []
    host = resources.create_extension_host(ToolRegistry(), on_diagnostic=diagnostics.append)

    def before(name: str, decision: Any, reason: str = "") -> Callable[[Any], Any]:
        def hook(call: Any) -> Any:
            seen.append(f"{name} {call.id} {call.arguments['text']}")
            return resources.HookDecision(decision, reason)

        async def async_hook(call: Any) -> Any:
            return hook(call)

        return async_hook if name == "two" else hook

    def after(result: Any) -> None:
        seen.append("after")

    def two(context: Any) -> None:
        context.on("after_tool_result", after)
        context.on("before_tool_call", before("two", "deny", "no notes today"))
        context.on("before_tool_call", before("three", "allow"))

    await load(host, "one", hooks(before_tool_call=before("one", "allow"), after_tool_result=after))
    await load(host, "two", two)
    await load(host, "four", hooks(before_tool_call=before("four", "deny", "never asked")))

    core = Core()
    result = await run(host, core, note())
    assert seen == ["one note-1 parser is stable", "two note-1 parser is stable"]
    assert core.calls == []
    assert isinstance(result, ToolResultMessage)
    assert (result.tool_call_id, result.tool_name, result.is_error) == ("note-1", "review_note", True)
    assert result.details == {"extensionId": "two", "reason": "no notes today"}
    assert result.content
    assert all(isinstance(part, TextContent) for part in result.content)
    # A deny is a decision, no fault.
    assert diagnostics == []


@pytest.mark.lab12
@pytest.mark.lab12_5
async def test_a_faulty_before_hook_blocks_the_call() -> None:
    """A before hook that raises, times out or gives no decision blocks the call and is diagnosed."""

    def raising(call: Any) -> Any:
        raise RuntimeError("policy service is down")

    async def raising_later(call: Any) -> Any:
        await asyncio.sleep(0)
        raise OSError("policy file is gone")

    async def hanging(call: Any) -> Any:
        await asyncio.Event().wait()

    async def silent(call: Any) -> None:
        return None

    faults: dict[str, tuple[Callable[[Any], Any], str]] = {
        "raises": (raising, "error"),
        "raises later": (raising_later, "error"),
        "hangs": (hanging, "timeout"),
        "says nothing": (silent, "error"),
        "says True": (lambda call: True, "error"),
        "says allow as text": (lambda call: "allow", "error"),
        "decides something else": (lambda call: resources.HookDecision("maybe"), "error"),
    }
    for what, (fault, kind) in faults.items():
        diagnostics: list[Any] = []
        seen: list[str] = []
        # No hook but the one that hangs has to be quick.
        timeout = 0.01 if what == "hangs" else 5.0
        host = resources.create_extension_host(
            ToolRegistry(), hook_timeout=timeout, on_diagnostic=diagnostics.append
        )

        def later(call: Any, seen: list[str] = seen) -> Any:
            seen.append("later")
            return resources.HookDecision("allow")

        await load(host, "policy", hooks(before_tool_call=[fault, later], after_tool_result=later))
        core = Core()
        result = await run(host, core, note())

        assert core.calls == [], what
        assert seen == [], what
        assert (result.tool_call_id, result.tool_name) == ("note-1", "review_note"), what
        assert result.is_error, what
        shown = [(each.extension_id, each.hook, each.kind) for each in diagnostics]
        assert shown == [("policy", "before_tool_call", kind)], what
        assert diagnostics[0].message, what
        assert result.details == {"extensionId": "policy", "reason": diagnostics[0].message}, what


@pytest.mark.lab12
@pytest.mark.lab12_5
async def test_after_hooks_watch_the_result_and_change_nothing() -> None:
    """An allowed call runs core once, every after hook sees the result, none of their faults changes it."""
    diagnostics: list[Any] = []
    seen: list[Any] = []
    changed: list[str] = []
    host = resources.create_extension_host(
        ToolRegistry(), hook_timeout=0.05, on_diagnostic=diagnostics.append
    )

    def attempt(value: Any, name: str, field: dict[str, Any]) -> None:
        """Try to change what a hook was given, at the top and further down."""
        for change in (lambda: setattr(value, name, "changed"), lambda: field.update(text="changed")):
            try:
                change()
            except (TypeError, AttributeError):
                continue
            changed.append(name)

    def allow(call: Any) -> Any:
        attempt(call, "name", call.arguments)
        return resources.HookDecision("allow")

    def raising(result: Any) -> Any:
        raise RuntimeError("observer is broken")

    async def hanging(result: Any) -> Any:
        await asyncio.Event().wait()

    async def observing(result: Any) -> Any:
        attempt(result, "is_error", result.details)
        seen.append((result.tool_call_id, result.is_error, result.content[0].text))
        return ToolResultMessage("other", "other", [], True, 2)

    after = [observing, raising, hanging, raising, observing]
    await load(host, "watch", hooks(before_tool_call=[allow, allow], after_tool_result=after))
    await load(host, "watch-too", hooks(after_tool_result=observing))
    core, call = Core(), note()
    result = await run(host, core, call)

    assert core.calls == [note()]
    assert seen == [("note-1", False, "noted")] * 3
    assert [(each.extension_id, each.hook, each.kind) for each in diagnostics] == [
        ("watch", "after_tool_result", "error"),
        ("watch", "after_tool_result", "timeout"),
        ("watch", "after_tool_result", "error"),
    ]
    assert changed == []
    # The caller gets the fact that core stated, as a copy at every depth, and core a copy of the call.
    assert result == core.results[0]
    assert result is not core.results[0]
    assert result.details is not core.results[0].details
    assert result.content[0] is not core.results[0].content[0]
    assert core.calls[0] is not call
