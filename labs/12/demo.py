"""Knows the chapter's opening request and plays it, step by step, on whatever `pi_course` is on `sys.path`.

Decision: the workspace and the extension are real files in a temporary directory, because the trace is to
show reading and importing, not stand-ins for them.
"""

import asyncio
import importlib.util
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from pi_course import resources
from pi_course.context import build_context
from pi_course.messages import ToolCall, ToolResultMessage, UserMessage, text_of
from pi_course.schema import ToolContext
from pi_course.session import MessageEntry
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry, execute_tool_call

EXTENSION = '''\
"""The review extension: one tool, one policy, one observer."""

from pi_course.resources import HookDecision
from pi_course.schema import ToolDefinition

print("  import  the module's own code runs now")


async def write_note(arguments, context):
    print("  tool    writes the note")
    return "noted: " + arguments["text"]


def before(call):
    if "SECRET" in call.arguments["text"]:
        print("  before  deny")
        return HookDecision("deny", "a note must not hold a secret")
    print("  before  allow")
    return HookDecision("allow")


def after(result):
    print("  after   sees", result.tool_call_id)


def setup(context):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    context.register_tool(ToolDefinition("review_note", "Keep a review note.", schema, write_note))
    context.on("before_tool_call", before)
    context.on("after_tool_result", after)
    print("  setup   stages review_note and two hooks")
'''

SKILL = "---\nname: review\ndescription: {}\n---\n{}\n"

FILES = {
    "project/AGENTS.md": "PROJECT RULES\n",
    "project/skills/review/SKILL.md": SKILL.format("project review", "Read the diff first."),
    "project/skills/review/references/checklist.md": "tests\nsecurity\n",
    "project/templates/review.md": "Review {{target}} for {{owner}}.",
    "project/extensions/review_extension.py": EXTENSION,
    "user/skills/review/SKILL.md": SKILL.format("user review", "Read whatever you like."),
    "user/templates/review.md": "Have a look at {{target}}.",
}


@dataclass(kw_only=True)
class Trace:
    """What the steps so far have produced, for the steps to come."""

    root: Path
    catalog: resources.ResourceCatalog | None = None
    active: list[resources.ActivatedSkill] = field(default_factory=list)
    message: UserMessage | None = None
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    host: resources.ExtensionHost | None = None
    core_runs: int = 0

    def relative(self, path: str) -> str:
        """Give a path as seen from the temporary root."""
        return Path(path).relative_to(self.root).as_posix()


async def discover(trace: Trace) -> None:
    """Show which version of each resource wins, and that the catalog holds no skill's text."""
    trace.catalog = await resources.discover_resources([trace.root / "project", trace.root / "user"])
    print("Lab 12.1  discovery in [project, user]")
    for winner in trace.catalog.resources:
        print(f"  {winner.kind + ':' + winner.name:20}  {trace.relative(winner.source)}")
    for skill in trace.catalog.skills:
        print(f"  {skill.name} is known as {skill.description!r}, its text is not in the catalog")


async def activate(trace: Trace) -> None:
    """Show what activation adds: the body and the file asked for."""
    assert trace.catalog is not None
    skill = await resources.activate_skill(trace.catalog, "review", resources=["references/checklist.md"])
    trace.active = [skill]
    print("Lab 12.2  activation of review")
    print(f"  {trace.relative(skill.source)}: {skill.body!r}")
    for file in skill.resources:
        print(f"  {trace.relative(file.source)}: {file.content!r}")


async def render(trace: Trace) -> None:
    """Show the user's message that the template gives."""
    assert trace.catalog is not None
    values = {"target": "src/parser.ts", "owner": "runtime"}
    trace.message = resources.render_template(trace.catalog.templates[0], values)
    print("Lab 12.3  template")
    print(f"  {trace.message.role}: {text_of(trace.message)}")


async def project(trace: Trace) -> None:
    """Show the system prompt, and that Chapter 11 passes it on under its budget."""
    assert trace.catalog is not None
    assert trace.message is not None
    prompt = resources.format_resource_context(trace.catalog, trace.active)
    print("Lab 12.3  context")
    for line in prompt.split("\n"):
        print(f"  | {line}".rstrip())
    view = build_context(
        [MessageEntry(id="m1", parent_id=None, timestamp=0, message=trace.message)],
        max_tokens=20,
        estimate_tokens=lambda item: 1,
        system_prompt=prompt,
        reserved_output=2,
        safety_margin=1,
    )
    same = view.system_prompt == prompt
    print(f"  build_context: {view.used_tokens} of 20 tokens, system prompt passed on as it is: {same}")


async def extend(trace: Trace) -> None:
    """Show trust, import, setup and commit in their order, and that distrust ends it."""
    trace.host = resources.create_extension_host(trace.registry)

    def is_trusted(source: resources.ExtensionSource) -> bool:
        print(f"  trust   {source.id}: {source.id == 'review-extension'}")
        return source.id == "review-extension"

    path = trace.root / "project/extensions/review_extension.py"
    print("Lab 12.4  extensions")
    for extension_id in ("stranger", "review-extension"):
        source = resources.ExtensionSource(id=extension_id, path=str(path))
        loaded = await resources.load_extension(
            source, host=trace.host, is_trusted=is_trusted, import_module=import_file
        )
        print(f"  {'commit' if loaded.status == 'active' else 'skip':6}  {loaded.status}")
        print(f"  tools in the registry: {', '.join(trace.registry.names()) or 'none'}")


def import_file(source: resources.ExtensionSource) -> ModuleType:
    """Import an extension from its file."""
    spec = importlib.util.spec_from_file_location("review_extension", source.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def call_tools(trace: Trace) -> None:
    """Show one note that passes the hooks and one that is refused."""
    assert trace.host is not None

    async def core(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        trace.core_runs += 1
        print(f"  core    executes {call.id}")
        return await execute_tool_call(call, trace.registry, context)

    execute = trace.host.wrap_executor(core)
    for call_id, text in (("note-1", "parser is stable"), ("note-2", "SECRET token")):
        print(f"Lab 12.5  {call_id}, {text!r}")
        call = ToolCall(id=call_id, name="review_note", arguments={"text": text})
        result = await execute(call, ToolContext(AbortController().signal))
        outcome = f"error, {result.details!r}" if result.is_error else text_of(result)
        print(f"  result  {result.tool_call_id}, {result.tool_name}: {outcome}")
        print(f"  core runs so far: {trace.core_runs}")


STEPS = (
    ("12.1", discover),
    ("12.2", activate),
    ("12.3", render),
    ("12.3", project),
    ("12.4", extend),
    ("12.5", call_tools),
)


async def play(root: Path) -> None:
    """Write the workspace, then take the steps until one of them meets an unfinished lab."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    trace = Trace(root=root)
    for lab, step in STEPS:
        try:
            await step(trace)
        except NotImplementedError as scaffold:
            named = re.match(r"Lab (\d+\.\d+)", str(scaffold))
            print(f"The trace ends here: Lab {named[1] if named else lab} is not finished yet.")
            return


def main(argv: list[str]) -> int:
    """Play the request; an unfinished lab ends the trace and is no error."""
    if argv:
        print("This demo takes no arguments.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(play(Path(name).resolve()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
