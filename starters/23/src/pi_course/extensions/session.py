"""The session: extensions loaded behind the trust gate, bound to the core, and replaced as a whole."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pi_course.extensions.loader import (
    ExtensionFactory,
    ExtensionLoader,
    ImportModule,
    InlineExtension,
    LoadExtensionsResult,
    import_extension,
)
from pi_course.extensions.packages import ExtensionSettings, ResolvedExtensions, resolve_extensions
from pi_course.extensions.runner import ErrorListener, ExtensionRunner
from pi_course.extensions.sources import RuntimeActions
from pi_course.messages import ToolCall, ToolResultMessage
from pi_course.schema import ToolContext, ToolDefinition

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
        # TODO(23.6): `cwd`, canonical, is public.
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")

    async def reload(self, resolve_trust: TrustResolver | None = None) -> LoadExtensionsResult:
        """Forget the cached factories and load anew; the next session to be bound gets the result.

        Where trust is required, `resolve_trust` is asked, with a runner of what needs none, and only True is
        trust; without it the last answer stands. Then the project's extensions join the same runtime: nothing
        runs twice, and the order is as if all had come at once. Raises what `resolve_trust` raises.
        """
        # TODO(23.6): ask before anything of the project is imported.
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")

    async def claim(self) -> LoadExtensionsResult:
        """Hand the latest result to a session, or load once more: no two sessions share a runtime."""
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")


@dataclass(frozen=True, kw_only=True)
class AgentParts(RuntimeActions):
    """What the agent does for a session: the actions but those on tools, and two steps of a reload."""

    reload_settings: Callable[[], object] = lambda: None  # plain or async
    reset_providers: Callable[[], object] = lambda: None


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
        # TODO(23.5): public are `tool_registry` and `resource_roots`, the answers to `resources_discover`.
        raise NotImplementedError("Lab 23.5 AgentSession 尚未实现")

    @property
    def runner(self) -> ExtensionRunner:
        """The runner, for commands, flags and the other events; ExtensionError before `bind`."""
        raise NotImplementedError("Lab 23.5 AgentSession 尚未实现")

    def on_error(self, listener: ErrorListener) -> None:
        """Call the listener with every fault of an extension from the next `bind` or `reload` on."""
        raise NotImplementedError("Lab 23.5 AgentSession 尚未实现")

    async def bind(self, host: object | None = None) -> None:
        """Bind the core, then emit `session_start` and `resources_discover` with the reason `startup`.

        `host` is what handlers find as `event.context.host`; only a session that has one starts again when
        it is reloaded. ExtensionError the second time.
        """
        raise NotImplementedError("Lab 23.5 AgentSession 尚未实现")

    async def reload(self) -> None:
        """Replace every extension by a newly loaded one, step by step as chapter 23 has it.

        Hardened: flags keep a value that was set and no default, which may have been edited; tools that were
        switched off stay off; the old runtime is dead. Where a step raises, the old handlers go on guarding.
        """
        # TODO(23.6): step by step.
        raise NotImplementedError("Lab 23.6 ResourceLoader 尚未实现")

    async def dispose(self) -> None:
        """Emit `session_shutdown` with the reason `quit` and end the runtime: no call is run any more."""
        raise NotImplementedError("Lab 23.5 AgentSession 尚未实现")

    async def execute(self, call: ToolCall, context: ToolContext | None = None) -> ToolResultMessage:
        """Run a call past the extensions; give back its paired result, an error result whatever goes wrong.

        What is unknown, invalid (also by a handler's edit) or blocked reaches neither core nor `tool_result`
        handlers; a block's details are `{"extension": path, "reason": text}`. Unless bound, nothing runs.
        """
        # TODO(23.5): a result, whatever happens.
        raise NotImplementedError("Lab 23.5 AgentSession 尚未实现")
