"""The session: extensions loaded behind the trust gate, bound to the core, and replaced as a whole."""

# Paths are strings here, spelled as they were given.
# ruff: noqa: PTH100, PTH111

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

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
from pi_course.extensions.sources import (
    Extension,
    LoadError,
    ResolvedPath,
    RuntimeActions,
    SourceInfo,
    canonical_path,
    described,
    settle,
)
from pi_course.extensions.trust import requires_trust
from pi_course.messages import ToolCall, ToolResultMessage
from pi_course.resources import ExtensionError
from pi_course.schema import ToolContext, ToolDefinition, validate_arguments
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry, error_result, execute_tool_call
from pi_course.values import JsonValue

TrustResolver: TypeAlias = Callable[[ExtensionRunner], bool | Awaitable[bool]]


class ResourceLoader:
    """What the sessions of a project get their extensions from. (Chapter 23, Lab 23.6)

    The settings are read at every load: a host may edit them in place. Hardened: a project that requires
    trust is untrusted until a resolver says otherwise, because code that ran can't be called back.
    """

    def __init__(
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
        self.cwd = canonical_path(os.path.abspath(cwd))
        self._home = os.path.expanduser("~") if home is None else os.fspath(home)
        self._loader = ExtensionLoader() if loader is None else loader
        self._inline = inline
        self._resolve = partial(
            resolve,
            cwd=self.cwd,
            agent_dir=os.path.abspath(agent_dir),
            project=ExtensionSettings() if project is None else project,
            user=ExtensionSettings() if user is None else user,
            cli=cli,
            no_extensions=no_extensions,
        )
        self._load = partial(self._loader.load_cached, cwd=self.cwd, import_module=import_module)
        self._answer: bool | None = None  # a resolver's last one
        self._latest: LoadExtensionsResult | None = None

    async def reload(self, resolve_trust: TrustResolver | None = None) -> LoadExtensionsResult:
        """Forget the cached factories and load anew; the next session to be bound gets the result.

        Where trust is required, `resolve_trust` is asked, with a runner of what needs none, and only True is
        trust; without it the last answer stands. Then the project's extensions join the same runtime: nothing
        runs twice, and the order is as if all had come at once. Raises what `resolve_trust` raises.
        """
        self._loader.clear()
        self._latest = None
        self._latest = result = await self._loaded(resolve_trust)
        return result

    async def claim(self) -> LoadExtensionsResult:
        """Hand the latest result to a session, or load once more: no two sessions share a runtime."""
        result, self._latest = self._latest, None
        return result or await self._loaded(None)

    async def _loaded(self, resolve_trust: TrustResolver | None) -> LoadExtensionsResult:
        """Load into a new runtime, which has no future if the load doesn't come to its end."""
        runtime = ExtensionRuntime()
        try:
            needed = requires_trust(self.cwd, home=self._home)
            if needed and resolve_trust is not None:
                return await self._two_phases(runtime, resolve_trust)
            resolved = self._resolved(not needed or self._answer is True)
            result = await self._load(resolved.paths, runtime=runtime, inline=self._inline)
            return _finished(result, resolved, result.errors)
        except BaseException:
            runtime.invalidate("The extensions were not loaded to the end.")
            raise

    async def _two_phases(
        self, runtime: ExtensionRuntime, resolve_trust: TrustResolver
    ) -> LoadExtensionsResult:
        """Load what needs no trust, ask with that, then load what is missing."""
        resolved = self._resolved(False)
        first = await self._load(resolved.paths, runtime=runtime, inline=self._inline)
        runner = ExtensionRunner(first.extensions, runtime, cwd=self.cwd)
        errors = list(first.errors)
        runner.on_error(lambda fault: errors.append(LoadError(fault.path, fault.error)))
        self._answer = await settle(resolve_trust(runner)) is True
        if not self._answer:
            return _finished(first, resolved, errors)
        tried = {canonical_path(each.path) for each in resolved.paths if each.enabled}
        resolved = self._resolved(True)
        missing = [each for each in resolved.paths if canonical_path(each.path) not in tried]
        second = await self._load(missing, runtime=runtime)
        both = LoadExtensionsResult([*first.extensions, *second.extensions], [], runtime)
        result = _finished(both, resolved, [*errors, *second.errors])
        runtime.arrange(result.extensions)
        return result

    def _resolved(self, trusted: bool) -> ResolvedExtensions:
        """Resolve; without trust not even the installed distributions are looked for."""
        if trusted or not _takes(self._resolve, "entry_points"):
            return self._resolve(trusted=trusted)
        return self._resolve(trusted=False, entry_points=lambda **_: ())


def _takes(function: Callable[..., object], option: str) -> bool:
    try:
        inspect.signature(function).bind_partial(**{option: None})
    except (TypeError, ValueError):  # a host's own resolver may have fewer doors
        return False
    return True


def _finished(
    loaded: LoadExtensionsResult, resolved: ResolvedExtensions, errors: Sequence[LoadError]
) -> LoadExtensionsResult:
    """Order what was loaded as resolved, with its real sources, and say what went wrong in all."""
    inline = [each for each in loaded.extensions if each.resolved_path.startswith("<inline:")]
    files = {each.resolved_path: each for each in loaded.extensions if each not in inline}
    enabled = {canonical_path(each.path): each for each in resolved.paths if each.enabled}
    extensions = [files[file] for file in enabled if file in files]
    for extension in extensions:
        _source(extension, enabled[extension.resolved_path])
    extensions += inline
    everything = [*resolved.errors, *errors, *_conflicts(extensions)]
    return LoadExtensionsResult(extensions, everything, loaded.runtime)


def _source(extension: Extension, resolved: ResolvedPath) -> None:
    come = resolved.metadata
    extension.path = resolved.path
    extension.apply_source_info(
        SourceInfo(resolved.path, come.source, come.scope, come.origin, come.base_dir)
    )


def _conflicts(extensions: Iterable[Extension]) -> Iterator[LoadError]:
    """Name the tools and flags that an earlier extension has, and the first that had them."""
    owners: dict[tuple[str, str], Extension] = {}
    for extension in extensions:
        names = [("Tool", f'"{name}"') for name in extension.tools]
        names += [("Flag", f'"--{name}"') for name in extension.flags]
        for kind, name in names:
            owner = owners.setdefault((kind, name), extension)
            if owner is not extension:
                yield LoadError(extension.path, f"{kind} {name} conflicts with {owner.path}")


@dataclass(frozen=True, kw_only=True)
class AgentParts(RuntimeActions):
    """What the agent does for a session: the actions but those on tools, and two steps of a reload."""

    reload_settings: Callable[[], object] = lambda: None  # plain or async
    reset_providers: Callable[[], object] = lambda: None


class _LiveRegistry(ToolRegistry):
    """A registry whose tools are put together anew while an Agent holds it."""

    def put(self, tools: dict[str, ToolDefinition]) -> None:
        """Hold just these tools."""
        self._tools = tools


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
        self.tool_registry = _LiveRegistry()
        self.resource_roots: list[str] = []
        self._parts = parts
        self._loader = loader
        self._own_tools = (list(builtin_tools), list(custom_tools))
        self._off: set[str] = set()  # names of tools, also of those that are gone for now
        self._listeners: list[ErrorListener] = []
        self._host: object | None = None
        self._runner: ExtensionRunner | None = None
        self._shutdown_told = False
        self._disposed = False
        self._lock = asyncio.Lock()

    @property
    def runner(self) -> ExtensionRunner:
        """The runner, for commands, flags and the other events; ExtensionError before `bind`."""
        if self._runner is None or self._disposed:
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
        async with self._lock:
            if self._runner is not None or self._disposed:
                raise ExtensionError("a session is bound once")
            result = await self._loader.claim()
            self._host = host
            self._use(result)
            await self._start("startup")

    def _use(self, result: LoadExtensionsResult) -> None:
        """Let a runner of these extensions take over, with the core behind them."""
        runner = ExtensionRunner(result.extensions, result.runtime, cwd=self._loader.cwd)
        runner.host = self._host
        for listener in self._listeners:
            runner.on_error(listener)
        actions = replace(
            self._parts,
            get_active_tools=self.tool_registry.names,
            set_active_tools=self._set_active_tools,
            refresh_tools=self._refresh_tools,
        )
        before = self._runner
        self._runner = runner  # already while providers are registered: that may lead back here
        try:
            result.runtime.bind(actions, runner.report)
        except BaseException:
            self._runner = before
            raise
        self._shutdown_told = False
        self._refresh_tools()

    async def _start(self, reason: str) -> None:
        runner = self.runner
        await runner.emit(ExtensionEvent("session_start", reason=reason))
        answers = await runner.emit(ExtensionEvent("resources_discover", reason=reason))
        self.resource_roots = [root for answer in answers for root in answer]

    async def _stop(self, reason: str) -> None:
        """Tell the shutdown, once, and end the runtime whatever comes of that."""
        runner = self.runner
        try:
            if not self._shutdown_told:
                self._shutdown_told = True
                await runner.emit(ExtensionEvent("session_shutdown", reason=reason))
        finally:
            runner.runtime.invalidate(f"The session of this extension has ended ({reason}).")

    def _all_tools(self) -> dict[str, ToolDefinition]:
        builtin, custom = self._own_tools
        won = [tool.definition for tool in self._runner.tools().values()] if self._runner else []
        return {tool.name: tool for tool in [*builtin, *won, *custom]}

    def _refresh_tools(self) -> None:
        tools = self._all_tools().items()
        self.tool_registry.put({name: tool for name, tool in tools if name not in self._off})

    def _set_active_tools(self, names: Sequence[str]) -> None:
        known = self._all_tools().keys()
        self._off = (self._off - known) | (known - set(names))
        self._refresh_tools()

    async def reload(self) -> None:
        """Replace every extension by a newly loaded one, step by step as chapter 23 has it.

        Hardened: flags keep a value that was set and no default, which may have been edited; tools that were
        switched off stay off; the old runtime is dead. Where a step raises, the old handlers go on guarding.
        """
        async with self._lock:
            old = self.runner.runtime
            saved = old.set_values()
            await self._stop("reload")
            await settle(self._parts.reload_settings())
            await settle(self._parts.reset_providers())
            await self._loader.reload()
            result = await self._loader.claim()
            self._use(result)
            result.runtime.flag_values.update(saved)
            self._refresh_tools()
            if self._host is not None:
                await self._start("reload")

    async def dispose(self) -> None:
        """Emit `session_shutdown` with the reason `quit` and end the runtime: no call is run any more."""
        async with self._lock:
            if self._disposed:
                return
            try:
                if self._runner is not None:
                    await self._stop("quit")
            finally:
                self._disposed = True

    async def execute(self, call: ToolCall, context: ToolContext | None = None) -> ToolResultMessage:
        """Run a call past the extensions; give back its paired result, an error result whatever goes wrong.

        What is unknown, invalid (also by a handler's edit) or blocked reaches neither core nor `tool_result`
        handlers; a block's details are `{"extension": path, "reason": text}`. Unless bound, nothing runs.
        """
        context = context or ToolContext(AbortController().signal)
        try:
            self._assert_runs(call, context)
            verdict = await self.runner.emit_tool_call(call)
            if verdict.blocked:
                details: JsonValue = {"extension": verdict.path, "reason": verdict.reason}
                text = f"Blocked by extension {verdict.path}: {verdict.reason}"
                return error_result(call, text, details=details)
            self._assert_runs(verdict.call, context)
        except Exception as error:  # noqa: BLE001 - whatever speaks against the call is its result
            return error_result(call, described(error))
        runner = self.runner
        try:
            result = await execute_tool_call(verdict.call, self.tool_registry, context)
        except SystemExit as error:
            result = error_result(call, described(error))
        return await (self._runner or runner).emit_tool_result(result)  # of the session as it is by now

    def _assert_runs(self, call: ToolCall, context: ToolContext) -> None:
        """Raise what speaks against a call."""
        _ = self.runner  # raises unless bound
        context.signal.throw_if_aborted()
        tool = self.tool_registry.get(call.name)
        if tool is None:
            raise ExtensionError(f"there is no tool named {call.name!r} in use")
        validate_arguments(tool, call.arguments)
