"""How a path becomes a running extension: a fresh module, its factory, one container for each run."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from pi_course.extensions import packages
from pi_course.extensions.api import ExtensionAPI, ExtensionRuntime
from pi_course.extensions.sources import (
    Extension,
    LoadError,
    ResolvedPath,
    StrPath,
)

ExtensionFactory: TypeAlias = Callable[[ExtensionAPI], Awaitable[None] | None]
ImportModule: TypeAlias = Callable[[str], Any]  # gets a path or `<entry-point:NAME>`; plain or async


@dataclass(frozen=True)
class InlineExtension:
    """A factory that a host brings along, with the name it has in `<inline:name>`."""

    factory: ExtensionFactory
    name: str | None = None


@dataclass
class LoadExtensionsResult:
    """The extensions that came up, in the order of their paths, what went wrong, and their runtime."""

    extensions: list[Extension]
    errors: list[LoadError]
    runtime: ExtensionRuntime


def import_extension(path: str, *, entry_points: packages.EntryPointIndex = entry_points) -> Any:
    """Import an extension anew and return its module, or what an entry point names.

    `path` is canonical: a file, a folder with an index, or `<entry-point:NAME>`, which alone is imported as
    installed modules are. Each call gives modules under names never used before, the helpers beside the file
    (`import helper`, `from . import helper`) included. Their source counts, never a `.pyc`: whole seconds and
    sizes judge that, so an edit could go unseen. They stay in `sys.modules`, as handlers may import later,
    unless the import fails. (Chapter 23, Lab 23.2)
    """
    # TODO(23.2): fresh modules, from the source as it is now.
    raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")


async def load_extensions(
    paths: Sequence[str | ResolvedPath],
    *,
    cwd: StrPath,
    runtime: ExtensionRuntime | None = None,
    inline: Sequence[ExtensionFactory | InlineExtension] = (),
    import_module: ImportModule = import_extension,
) -> LoadExtensionsResult:
    """Import each path and await its `setup(api)`, one after another, then the inline factories.

    A failure, `SystemExit` included, is a `LoadError(path, "Failed to load extension: ...")`, and the next
    path goes on; CancelledError and KeyboardInterrupt pass through. Relative paths belong to `cwd`; disabled
    ones are left out. Inline factories are `<inline:N>`, N from 1, or `<inline:name>`. A factory's
    work on shared state counts from `ExtensionAPI.commit()` on, or never, by `discard()`.
    (Chapter 23, Lab 23.2)
    """
    # TODO(23.2): for each path: import, container, API, factory, commit; or an error.
    raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")


class ExtensionLoader:
    """Loads as `load_extensions`, but remembers factories: canonical path to factory, never an extension.

    What is remembered holds for one cwd and until `clear()`; a load that was under way then neither reads nor
    writes any more. What failed is not remembered. (Chapter 23, Lab 23.2)
    """

    async def load_cached(
        self,
        paths: Sequence[str | ResolvedPath],
        *,
        cwd: StrPath,
        runtime: ExtensionRuntime | None = None,
        inline: Sequence[ExtensionFactory | InlineExtension] = (),
        import_module: ImportModule = import_extension,
    ) -> LoadExtensionsResult:
        """Load, importing only what is not remembered; each factory runs, in a container of its own."""
        # TODO(23.2): take the token once, compare it at each read and each write.
        raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")

    def clear(self) -> None:
        """Forget every factory, those of loads under way too."""
        # TODO(23.2): a new generation.
        raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")


async def discover_and_load_extensions(
    paths: Sequence[str],
    *,
    cwd: StrPath,
    agent_dir: StrPath,
    trusted: bool = False,
    import_module: ImportModule = import_extension,
) -> LoadExtensionsResult:
    """Scan and load without settings, packages and ignore files: for the loader on its own.

    Looks in the project's `.pi/extensions`, the user's `extensions`, then the given files and folders; each
    file once. Hardened: the project's are left out unless `trusted`, as nothing is imported before trust.
    (Chapter 23, Lab 23.2)
    """
    # TODO(23.2): the plain scan of each folder, then load.
    raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")
