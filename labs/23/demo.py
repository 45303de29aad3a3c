"""Knows the chapter's opening question and plays its answer, on whatever `pi_course` is on `sys.path`.

Decision: the project and its extension are real files in a temporary directory, and the lines in between are
printed by the extension itself, because the trace is to show when code runs, not what a stand-in says.
"""

import asyncio
import io
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pi_course.extensions import loader, packages, runner, session, trust
from pi_course.messages import ToolCall, text_of
from pi_course.schema import ToolContext, ToolDefinition

NAME = "block_destructive_shell.py"
EXTENSION = '''\
"""Refuses shell commands that destroy."""

WORDS = ["rm -rf"]
print("  import      the file's top level runs now")


def guard(event):
    command = event.call.arguments.get("command", "")
    found = [word for word in WORDS if word in command]
    print(f"  tool_call   guard looks at {command!r}: {'block' if found else 'nothing to say'}")
    return {"block": True, "reason": f"{found[0]} destroys files"} if found else None


def started(event):
    tools = ", ".join(event.context.active_tools)
    print(f"  bind        {event.type}, reason {event.reason}; tools: {tools}")


def stopped(event):
    print(f"  shutdown    reason {event.reason}")


def setup(api):
    api.on("tool_call", guard)
    api.on("session_start", started)
    api.on("session_shutdown", stopped)
    print("  factory     setup(api) has registered", len(WORDS), "word and three handlers")
'''
EDITS = ('["rm -rf"]', '["mkfs."]')  # of equal length, within the same second
COMMANDS = ("ls", "rm -rf build")


def say(what: str, text: str) -> None:
    """Print one line of the trace."""
    print(f"  {what:<10}  {text}", flush=True)


class Shell:
    """A shell that runs nothing and counts how often it was asked to."""

    def __init__(self) -> None:
        self.runs = 0

    def definition(self) -> ToolDefinition:
        """Give the tool."""
        words: Any = {"type": "object", "properties": {"command": {"type": "string"}}}
        return ToolDefinition("shell", "Run a command.", words, self._run)

    async def _run(self, arguments: dict[str, Any], _context: ToolContext) -> str:
        self.runs += 1
        say("core", f"the shell runs {arguments['command']!r}")
        return "done"


@dataclass(frozen=True)
class Workspace:
    """A project with the extension in it, and a user who has none."""

    root: Path

    @property
    def project(self) -> Path:
        """The project's directory."""
        return self.root / "project"

    @property
    def extension(self) -> Path:
        """The extension's file."""
        return self.project / ".pi" / "extensions" / NAME

    def copy_extension(self) -> None:
        """Put the file where extensions are looked for; that is all a user does."""
        self.extension.parent.mkdir(parents=True)
        self.extension.write_text(EXTENSION, encoding="utf-8", newline="\n")

    def edit_extension(self) -> None:
        """Change the words, but neither the file's size nor the second of its date."""
        text = self.extension.read_text(encoding="utf-8")
        self.extension.write_text(text.replace(*EDITS), encoding="utf-8", newline="\n")

    def relative(self, path: str) -> str:
        """Give a path as seen from the temporary root."""
        return Path(path).relative_to(self.root).as_posix()

    def shelf(self) -> session.ResourceLoader:
        """Make a resource loader of this workspace alone, without what the machine has installed."""

        def resolve(**given: Any) -> packages.ResolvedExtensions:
            return packages.resolve_extensions(**given, entry_points=lambda **_query: [])

        agent_dir = self.root / "home" / ".pi" / "agent"
        return session.ResourceLoader(
            cwd=self.project, agent_dir=agent_dir, home=self.root / "home", resolve=resolve
        )


async def show_resolution(workspace: Workspace) -> None:
    """Show what is listed, without and with trust; nothing runs."""
    print("resolve_extensions")
    for trusted in (False, True):
        listed = packages.resolve_extensions(
            cwd=workspace.project,
            agent_dir=workspace.root / "home" / ".pi" / "agent",
            project=packages.ExtensionSettings(),
            user=packages.ExtensionSettings(),
            trusted=trusted,
            entry_points=lambda **_query: [],
        )
        say("resolve", f"trusted={trusted}: {len(listed.paths)} found")
        for one in listed.paths:
            about = f"{one.metadata.scope}, {one.metadata.source}, {'enabled' if one.enabled else 'disabled'}"
            say("", f"{workspace.relative(one.path)} ({about})")


async def show_stages(workspace: Workspace) -> None:
    """Take the file through import, factory, runner and session, each by its own function."""
    print("one stage after another")
    path, shell = str(workspace.extension), Shell()
    loaded = await loader.load_extensions([path], cwd=workspace.project)
    tell_errors(workspace, loaded)
    for one in loaded.extensions:
        say("container", f"{workspace.relative(one.path)} holds handlers of {', '.join(one.handlers)}")
    asking = runner.ExtensionRunner(loaded.extensions, loaded.runtime, cwd=str(workspace.project))
    verdict = await asking.emit_tool_call(ToolCall("call-0", "shell", {"command": COMMANDS[-1]}))
    say("runner", f"blocked: {verdict.blocked}, reason: {verdict.reason}")
    stand_in: Any = SimpleNamespace(cwd=str(workspace.project), claim=lambda: asyncio.sleep(0, loaded))
    serving = session.AgentSession(session.AgentParts(), stand_in, builtin_tools=[shell.definition()])
    await serving.bind()
    for command in COMMANDS:
        await ask_for(serving, shell, command)
    await serving.dispose()


async def play_session(workspace: Workspace, answer: bool) -> None:
    """Load with an answer to the question of trust, bind, and let the model ask for the bad command."""
    print(f"all of it, and the user says {'yes' if answer else 'no'}")
    needed = trust.requires_trust(workspace.project, home=workspace.root / "home")
    say("trust", f"is it needed? {'yes, the project brings code' if needed else 'no'}")

    def decide(_runner: Any) -> bool:
        say("trust", f"asked, and answered {'yes' if answer else 'no'}; nothing of the project has run")
        return answer

    shelf, shell = workspace.shelf(), Shell()
    loaded = await shelf.reload(decide)
    tell_errors(workspace, loaded)
    say("loaded", ", ".join(workspace.relative(one.path) for one in loaded.extensions) or "nothing")
    serving = session.AgentSession(session.AgentParts(), shelf, builtin_tools=[shell.definition()])
    await serving.bind(host="the demo")
    await ask_for(serving, shell, COMMANDS[-1])
    if answer:
        workspace.edit_extension()
        print(f"reload, after an edit from {EDITS[0]} to {EDITS[1]}")
        await serving.reload()
        await ask_for(serving, shell, COMMANDS[-1])
    await serving.dispose()


def tell_errors(workspace: Workspace, loaded: loader.LoadExtensionsResult) -> None:
    """Print what went wrong. Raises NotImplementedError where that was an unfinished lab."""
    for problem in loaded.errors:
        if scaffold := re.search(r"NotImplementedError: (Lab .*)", problem.error):
            raise NotImplementedError(scaffold[1])
        say("error", f"{workspace.relative(problem.path)}: {problem.error}")


async def ask_for(serving: session.AgentSession, shell: Shell, command: str) -> None:
    """Call the tool as the model would, and show the result and how often the core has run for it."""
    before = shell.runs
    result = await serving.execute(ToolCall("call-1", "shell", {"command": command}))
    text = text_of(result).replace(f"{serving.runner.cwd}/", "")
    runs = shell.runs - before
    say("blocked" if result.is_error else "result", f"{result.tool_call_id}, core runs {runs}: {text}")


async def play(workspace: Workspace) -> None:
    """Copy the file, then follow it: listed, taken through the stages, distrusted, trusted, reloaded."""
    workspace.copy_extension()
    print(f"{workspace.relative(str(workspace.extension))} is copied into a project")
    await show_resolution(workspace)
    await show_stages(workspace)
    for answer in (False, True):
        await play_session(workspace, answer)


def main(argv: list[str]) -> int:
    """Play the trace; an unfinished lab ends it in one sentence and is no error."""
    if argv:
        print("This demo takes no arguments.", file=sys.stderr)
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    with tempfile.TemporaryDirectory() as name:
        try:
            asyncio.run(play(Workspace(Path(name).resolve())))
        except NotImplementedError as scaffold:
            lab = re.match(r"Lab (\d+\.\d+)", str(scaffold))
            print(f"The trace ends here: Lab {lab[1] if lab else '23.1'} is not finished yet.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
