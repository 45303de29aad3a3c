"""The session: extensions loaded behind the trust gate, bound to the core, and replaced as a whole."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from pi_course.extensions.api import ExtensionRuntime
from pi_course.extensions.loader import (
    ExtensionFactory,
    ExtensionLoader,
    ImportModule,
    InlineExtension,
    LoadExtensionsResult,
    import_extension,
)
from pi_course.extensions.packages import ExtensionSettings, ResolvedExtensions, resolve_extensions
from pi_course.extensions.runner import ErrorListener, ExtensionEvent, ExtensionRunner
from pi_course.extensions.sources import Extension, LoadError, RuntimeActions, SourceInfo, canonical_path
from pi_course.extensions.trust import requires_trust
from pi_course.messages import ToolCall, ToolResultMessage
from pi_course.resources import ExtensionError
from pi_course.schema import ToolArgumentError, ToolContext, ToolDefinition, validate_arguments
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry, error_result, execute_tool_call

TrustResolver: TypeAlias = Callable[[ExtensionRunner], bool | Awaitable[bool]]


class ResourceLoader:
    """What the sessions of a project get their extensions from. (Chapter 23, Lab 23.6)

    The settings are read at every load: a host may edit them in place. Hardened: a project that requires
    trust is untrusted until a resolver says otherwise, because code that ran can't be called back.
    """

    def __init__(  # noqa: PLR0913 - all of them options
        self,
        *,
        cwd: str | os.PathLike[str],
        agent_dir: str | os.PathLike[str],
        home: str | os.PathLike[str] | None = None,
        project: ExtensionSettings | None = None,
        user: ExtensionSettings | None = None,
        cli: Sequence[str] = (),
        inline: Sequence[ExtensionFactory | InlineExtension] = (),
        no_extensions: bool = False,
        loader: ExtensionLoader | None = None,
        import_module: ImportModule = import_extension,
        resolve: Callable[..., ResolvedExtensions] = resolve_extensions,
    ) -> None:
        """Take the sources and the doors to them; `home` is the user's, `loader` may be shared."""
        self.cwd = canonical_path(cwd)
        self._home = home or Path.home()
        self._inline = inline
        self._loader = loader or ExtensionLoader()
        self._load = partial(self._loader.load_cached, cwd=self.cwd, import_module=import_module)
        self._resolve = partial(
            resolve, cwd=self.cwd, agent_dir=agent_dir, cli=cli, no_extensions=no_extensions
        )
        self._settings = {"project": project or ExtensionSettings(), "user": user or ExtensionSettings()}
        self._trusted = False
        self._latest: LoadExtensionsResult | None = None

    async def reload(self, resolve_trust: TrustResolver | None = None) -> LoadExtensionsResult:
        """Forget the cached factories and load anew; the next session to be bound gets the result.

        Where trust is required, `resolve_trust` is asked, with a runner of what needs none, and only True is
        trust; without it the last answer stands. Then the project's extensions join the same runtime: nothing
        runs twice, and the order is as if all had come at once. Raises what `resolve_trust` raises.
        """
        self._loader.clear()
        return await self._load_all(resolve_trust)

    async def claim(self) -> LoadExtensionsResult:
        """Hand the latest result to a session, or load once more: no two sessions share a runtime."""
        result, self._latest = self._latest or await self._load_all(None), None
        return result

    async def _load_all(self, resolve_trust: TrustResolver | None) -> LoadExtensionsResult:
        runtime = ExtensionRuntime()
        early, inline, tried = LoadExtensionsResult([], [], runtime), self._inline, set[str]()
        required = requires_trust(self.cwd, home=self._home)
        trusted = self._trusted or not required
        try:
            if required and resolve_trust is not None:
                paths = self._resolve(trusted=False, **self._settings).paths
                tried = {canonical_path(each.path) for each in paths if each.enabled}
                early, inline = await self._load(paths, runtime=runtime, inline=inline), ()
                runner = ExtensionRunner(early.extensions, runtime, cwd=self.cwd)
                runner.on_error(lambda fault: early.errors.append(LoadError(fault.path, fault.error)))
                answer = resolve_trust(runner)
                trusted = self._trusted = (await answer if inspect.isawaitable(answer) else answer) is True
            resolved = self._resolve(trusted=trusted, **self._settings)
            rest = [each for each in resolved.paths if canonical_path(each.path) not in tried]
            late = await self._load(rest, runtime=runtime, inline=inline)
        except BaseException:
            runtime.invalidate("The extensions were not loaded to the end.")
            raise
        extensions = _in_target_order([*early.extensions, *late.extensions], resolved)
        errors = [*resolved.errors, *early.errors, *late.errors, *_conflicts(extensions)]
        self._latest = LoadExtensionsResult(extensions, errors, runtime)
        return self._latest


def _in_target_order(extensions: Iterable[Extension], target: ResolvedExtensions) -> list[Extension]:
    """Order what two phases loaded, inline last, each with its real source; what is disabled now is out."""
    enabled = {canonical_path(each.path): (i, each) for i, each in enumerate(target.paths) if each.enabled}
    ranked = []
    for extension in extensions:
        rank, found = enabled.get(canonical_path(extension.path), (len(target.paths), None))
        if found is not None:
            extension.apply_source_info(SourceInfo(found.path, **asdict(found.metadata)))
        if found is not None or extension.path.startswith("<inline:"):
            ranked.append((rank, extension))
    return [extension for _, extension in sorted(ranked, key=lambda item: item[0])]


def _conflicts(extensions: Iterable[Extension]) -> list[LoadError]:
    """Return an error for each tool and flag whose name an earlier extension has."""
    owners: dict[str, Extension] = {}
    return [
        LoadError(extension.path, f"{name} conflicts with {owners[name].path}")
        for extension in extensions
        for name in [*(f'Tool "{n}"' for n in extension.tools), *(f'Flag "--{n}"' for n in extension.flags)]
        if owners.setdefault(name, extension) is not extension
    ]


@dataclass(frozen=True, kw_only=True)
class AgentParts(RuntimeActions):
    """What the agent does for a session: the actions but those on tools, and two steps of a reload."""

    reload_settings: Callable[[], object] = lambda: None  # plain or async
    reset_providers: Callable[[], object] = lambda: None


class _ToolsInUse(ToolRegistry):
    """The registry that an Agent holds while what is in it changes."""

    def hold(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools = {tool.name: tool for tool in tools}


class AgentSession:
    """The extensions of one session at work. (Chapter 23, Lab 23.5)

    `tool_registry` and `execute` are what an Agent takes as `tools` and `tool_executor`. The registry is live
    and holds the tools in use: built-in, then what won among the extensions', then the host's own, each in
    the place of an earlier one of its name. A handler must not await `bind`, `reload` or `dispose`, which
    wait for one another.
    """

    def __init__(
        self,
        parts: AgentParts,
        loader: ResourceLoader,
        *,
        builtin_tools: Iterable[ToolDefinition] = (),
        custom_tools: Iterable[ToolDefinition] = (),
    ) -> None:
        """Only build: `bind` gets the extensions and tells them."""
        self.tool_registry = _ToolsInUse()
        self.resource_roots: list[str] = []  # what the extensions answered to `resources_discover`
        self._parts = parts
        self._loader = loader
        self._builtin = {tool.name: tool for tool in builtin_tools}
        self._custom = {tool.name: tool for tool in custom_tools}
        self._off: set[str] = set()  # the names of tools that were switched off
        self._runner: ExtensionRunner | None = None
        self._state: Literal["new", "live", "shut"] = "new"
        self._host: object | None = None
        self._listeners: list[ErrorListener] = []
        self._turn = asyncio.Lock()
        self._refresh_tools()

    @property
    def runner(self) -> ExtensionRunner:
        """The runner, for commands, flags and the other events; ExtensionError before `bind`."""
        if self._runner is None:
            raise ExtensionError("the session is not bound")
        return self._runner

    def on_error(self, listener: ErrorListener) -> None:
        """Call the listener with every fault of an extension from the next `bind` or `reload` on."""
        self._listeners.append(listener)

    async def bind(self, host: object | None = None) -> None:
        """Bind the core, then emit `session_start` and `resources_discover` with the reason `startup`.

        `host` is what handlers find as `event.context.host`; only a session that has one starts again when
        it is reloaded. ExtensionError the second time.
        """
        async with self._turn:
            if self._state != "new":
                raise ExtensionError("a session is bound once")
            self._host = host
            self._take_up(await self._loader.claim())
            await self._start("startup")

    async def reload(self) -> None:
        """Replace every extension by a newly loaded one, step by step as chapter 23 has it.

        Hardened: flags keep a value that was set and no default, which may have been edited; tools that were
        switched off stay off; the old runtime is dead. Where a step raises, the old handlers go on guarding.
        """
        async with self._turn:
            flags = self.runner.runtime.set_values()
            await self._shut_down("reload")
            settings = self._parts.reload_settings()
            if inspect.isawaitable(settings):
                await settings
            self._parts.reset_providers()
            await self._loader.reload()
            self._take_up(await self._loader.claim())
            self.runner.runtime.flag_values.update(flags)
            self._refresh_tools()
            if self._host is not None:
                await self._start("reload")

    async def dispose(self) -> None:
        """Emit `session_shutdown` with the reason `quit` and end the runtime: no call is run any more."""
        async with self._turn:
            await self._shut_down("quit")
            self._runner, self._state = None, "shut"

    async def execute(self, call: ToolCall, context: ToolContext | None = None) -> ToolResultMessage:
        """Run a call past the extensions; give back its paired result, an error result whatever goes wrong.

        What is unknown, invalid (also by a handler's edit) or blocked reaches neither core nor `tool_result`
        handlers; a block's details are `{"extension": path, "reason": text}`. Unless bound, nothing runs.
        """
        runner, context = self._runner, context or ToolContext(AbortController().signal)
        if runner is None:
            return error_result(call, "Not run: the session is not bound")
        if not self._can_run(call, context):
            return await execute_tool_call(call, self.tool_registry, context)
        verdict = await runner.emit_tool_call(call)
        if verdict.blocked:
            text = f"Blocked by extension {verdict.path}: {verdict.reason}"
            return error_result(call, text, details={"extension": verdict.path, "reason": verdict.reason})
        runs = self._can_run(verdict.call, context)
        result = await execute_tool_call(verdict.call, self.tool_registry, context)
        return await runner.emit_tool_result(result) if runs else result

    def _can_run(self, call: ToolCall, context: ToolContext) -> bool:
        tool = self.tool_registry.get(call.name)
        if tool is None or context.signal.aborted:
            return False
        try:
            validate_arguments(tool, call.arguments)
        except ToolArgumentError:
            return False
        return True

    def _take_up(self, result: LoadExtensionsResult) -> None:
        """Let newly loaded extensions work: their runner, their runtime bound to the core, their tools."""
        self._runner = runner = ExtensionRunner(result.extensions, result.runtime, cwd=self._loader.cwd)
        runner.host = self._host
        for listener in self._listeners:
            runner.on_error(listener)
        actions = replace(
            self._parts,
            get_active_tools=self.tool_registry.names,
            set_active_tools=self._set_active_tools,
            refresh_tools=self._refresh_tools,
        )
        result.runtime.bind(actions, runner.report)
        self._state = "live"
        self._refresh_tools()

    def _refresh_tools(self) -> None:
        """Put the tools together; of what was not there before nothing is switched off."""
        tools = dict(self._builtin)
        if self._runner is not None:
            tools |= {name: tool.definition for name, tool in self._runner.tools().items()}
        self._known = tools | self._custom
        self.tool_registry.hold(tool for name, tool in self._known.items() if name not in self._off)

    def _set_active_tools(self, names: Sequence[str]) -> None:
        self._off = (self._off | self._known.keys()) - set(names)
        self._refresh_tools()

    async def _start(self, reason: str) -> None:
        await self.runner.emit(ExtensionEvent("session_start", reason=reason))
        answers = await self.runner.emit(ExtensionEvent("resources_discover", reason=reason))
        self.resource_roots = [root for roots in answers for root in roots]

    async def _shut_down(self, reason: str) -> None:
        """Tell the extensions, once, then end their runtime."""
        if self._state == "live":
            self._state = "shut"
            try:
                await self.runner.emit(ExtensionEvent("session_shutdown", reason=reason))
            finally:
                self.runner.runtime.invalidate(f"The session of this extension has ended ({reason}).")
