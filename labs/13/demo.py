"""Knows the chapter's opening request and plays it, from the restored leaf to the last append.

Decision: the trace is told by the parts around the Runtime (a store, a model, hooks and a tool that say when
they are used), because that is all a caller can see, whoever wrote the Runtime.
"""

import argparse
import asyncio
import io
import itertools
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pi_course import composition
from pi_course.events import AgentRunResult
from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    text_of,
    tool_calls_of,
    user_message,
)
from pi_course.model import ModelContext, ModelEvent, ScriptedModel
from pi_course.resources import (
    ExtensionHost,
    ExtensionSource,
    HookDecision,
    InstructionsResource,
    ResourceCatalog,
    SkillResource,
    create_extension_host,
    load_extension,
)
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.session import (
    InMemorySessionStore,
    JsonlSessionStore,
    MessageEntry,
    SessionEntry,
    SessionFileError,
    SessionStore,
)
from pi_course.signals import AbortSignal
from pi_course.tools import ToolRegistry

PROMPT = "检查 parser 并记录结论"
OLD = [
    MessageEntry("old-user", None, 1, user_message("继续检查 parser", timestamp=1)),
    MessageEntry(
        "old-assistant", "old-user", 2, AssistantMessage([TextContent("我会先看现有实现")], "stop", 2)
    ),
]
CALL = ToolCall("call-1", "review_note", {"text": "parser 的边界已检查"})
REPLIES = (
    AssistantMessage([CALL], "toolUse", 3),
    AssistantMessage([TextContent("检查完毕，结论已记录。")], "stop", 4),
)
RULE = InstructionsResource("AGENTS", "/project/AGENTS.md", "/project", "PROJECT RULE")
SKILL = SkillResource(
    "review", "Review code carefully", "/project/skills/review/SKILL.md", "/project/skills/review"
)
CATALOG = ResourceCatalog([RULE, SKILL], [RULE], [SKILL], [])


def say(what: str, text: str) -> None:
    """Print one line of the trace."""
    print(f"  {what:<13} {text}".rstrip(), flush=True)


def shown(message: AgentMessage) -> str:
    """Describe a message in a word or two."""
    calls = tool_calls_of(message)
    return f"{message.role} (tool call)" if calls else message.role


class ToldStore:
    """A store that says what it has accepted."""

    def __init__(self, inner: SessionStore) -> None:
        self._inner = inner
        self.leaf_id: str | None = None

    async def entries(self) -> list[SessionEntry]:
        """Give what the store inside has."""
        return await self._inner.entries()

    async def append(self, entry: SessionEntry) -> None:
        """Hand the entry on, then say so."""
        await self._inner.append(entry)
        self.leaf_id = entry.id
        what = shown(entry.message) if isinstance(entry, MessageEntry) else entry.type
        say("append", f"{entry.id}  parent {entry.parent_id}  {what}")


class ToldModel:
    """A model with two replies that says what it is shown."""

    def __init__(self) -> None:
        self._script = ScriptedModel(REPLIES)

    def stream(self, context: ModelContext, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Say which messages the projection has, then reply."""
        number = len(self._script.requests) + 1
        say(f"projection {number}", ", ".join(shown(message) for message in context.messages))
        if number == 1:
            for line in (context.system_prompt or "").split("\n"):
                say("", f"| {line}")
        say("model", ("replies with a tool call", "gives the final answer")[number - 1])
        return self._script.stream(context, signal)


async def review_note(arguments: dict[str, Any], _context: ToolContext) -> str:
    """Take the note."""
    say("core", f"{CALL.name} notes {arguments['text']!r}")
    return "noted"


def before(call: ToolCall) -> HookDecision:
    """Allow the call."""
    say("before", f"review-policy allows {call.name}")
    return HookDecision("allow")


def after(result: ToolResultMessage) -> None:
    """Observe the result."""
    say("after", f"review-policy sees {text_of(result)!r}")


def setup(context: Any) -> None:
    """Register what the extension brings."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    context.register_tool(ToolDefinition(CALL.name, "Keep a review note.", schema, review_note))
    context.on("before_tool_call", before)
    context.on("after_tool_result", after)


async def extended_tools() -> tuple[ToolRegistry, ExtensionHost]:
    """Load the extension."""
    tools = ToolRegistry()
    host = create_extension_host(tools)
    await load_extension(
        ExtensionSource("review-policy", "/project/extensions/review_policy.py"),
        host=host,
        is_trusted=lambda _source: True,
        import_module=lambda _source: SimpleNamespace(setup=setup),
    )
    return tools, host


async def play(inner: SessionStore) -> None:
    """Restore the session's last leaf, prompt once, and show how each mode would write the outcome."""
    if not await inner.entries():
        for entry in OLD:
            await inner.append(entry)
    entries = await inner.entries()
    store, leaf_id = ToldStore(inner), entries[-1].id
    tools, host = await extended_tools()
    taken = {entry.id for entry in entries}
    numbers = (number for number in itertools.count(1) if f"entry-{number}" not in taken)
    budget = composition.ContextBudget(8000, lambda value: 1, reserved_output=1000, safety_margin=100)
    config = composition.RuntimeConfig(leaf_id, budget, system_prompt="BASE SYSTEM")
    deps = composition.RuntimeDeps(
        model=ToldModel(),
        tools=tools,
        session=store,
        resources=CATALOG,
        extension_host=host,
        create_id=lambda: f"entry-{next(numbers)}",
    )
    print(f'Runtime.prompt("{PROMPT}")')
    runtime = await composition.create_runtime(config, deps)
    restored = runtime.control.get_state().messages
    say("restore", f"leaf {leaf_id}: {', '.join(shown(message) for message in restored)}")
    composition.create_context_projecting_model(
        ToldModel(),
        system_prompt=None,
        context=budget,
        get_snapshot=lambda: composition.ContextProjectionSnapshot([], 0),
    )
    result = await runtime.prompt(PROMPT)
    say("leaf", str(store.leaf_id))
    say("resolved", f"{result.reason} after {result.steps} model requests: {text_of(result.messages[-1])}")
    await runtime.dispose()
    await show_modes(result)


async def show_modes(result: AgentRunResult) -> None:
    """Write the result as each mode does; the prompt is not run again."""

    async def prompt(_value: str) -> AgentRunResult:
        return result

    for mode in ("interactive", "print", "json"):
        written: list[str] = []

        async def write(text: str, written: list[str] = written) -> None:
            written.append(text)

        runtime: Any = SimpleNamespace(prompt=prompt)
        await composition.run_mode(runtime, mode, PROMPT, SimpleNamespace(write=write))
        say(mode, re.sub(r"(?s)(\"messages\":\[).*\]", r"\1...]", "".join(written)).rstrip("\n"))


def main(argv: list[str]) -> int:
    """Play the request; an unfinished lab ends the trace in one sentence and is no error."""
    parser = argparse.ArgumentParser(prog="demo", description="Play chapter 13's opening request.")
    parser.add_argument("--session", type=Path, metavar="FILE", help="keep the session in FILE and resume it")
    options = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    store = JsonlSessionStore(options.session) if options.session else InMemorySessionStore()
    try:
        asyncio.run(play(store))
    except NotImplementedError as scaffold:
        lab = re.match(r"Lab (\d+\.\d+)", str(scaffold))
        print(f"The trace ends here: Lab {lab[1] if lab else '13.1'} is not finished yet.")
    except (SessionFileError, OSError) as error:
        print(f"The session can't be resumed: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
