"""How a path becomes a running extension: a fresh module, its factory, one container for each run."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

from pi_course.extensions.api import ExtensionAPI, ExtensionRuntime
from pi_course.extensions.sources import Extension, LoadError, ResolvedPath

ExtensionFactory: TypeAlias = Callable[[ExtensionAPI], Awaitable[None] | None]
ImportModule: TypeAlias = Callable[[str], Any]  # gets a path or `<entry-point:NAME>`; plain or async


@dataclass(frozen=True)
class InlineExtension:
    """A factory that a host brings along, with the name it has in `<inline:name>`."""

    factory: ExtensionFactory
    name: str | None = None


@dataclass
class LoadExtensionsResult:
    """The extensions that came up, in the order of their paths, what went wrong, and the runtime they share."""

    extensions: list[Extension]
    errors: list[LoadError]
    runtime: ExtensionRuntime


def import_extension(path: str, *, entry_points: Callable[..., Iterable[EntryPoint]] = entry_points) -> Any:
    """Import an extension anew and return its module, or what an entry point names.

    `path` is canonical: a file, a folder with an `index.py` or `__init__.py`, or `<entry-point:NAME>`. Each
    call gives modules of names that were never used before, the helpers beside the file included, which it
    imports as `import helper` or `from . import helper`; what counts is their source, never a `.pyc`.
    (Chapter 23, Lab 23.2)
    """
    # TODO(23.2): a module of its own, from the source as it is now.
    raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")


async def load_extensions(
    paths: Sequence[str | ResolvedPath],
    *,
    cwd: str | os.PathLike[str],
    runtime: ExtensionRuntime | None = None,
    inline: Sequence[ExtensionFactory | InlineExtension] = (),
    import_module: ImportModule = import_extension,
) -> LoadExtensionsResult:
    """Import each path and await its `setup(api)`, one after another, then the inline factories.

    A failure, `SystemExit` included, is a `LoadError(path, "Failed to load extension: ...")`, and the next path
    goes on; CancelledError and KeyboardInterrupt pass through. Relative paths belong to `cwd`; disabled ones
    are left out. Inline factories are `<inline:N>`, N from 1, or `<inline:name>`. What a factory does to
    shared state counts from `ExtensionAPI.commit()`, or never after `discard()`. (Chapter 23, Lab 23.2)
    """
    # TODO(23.2): import, container, API, factory, commit; or an error.
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
        cwd: str | os.PathLike[str],
        runtime: ExtensionRuntime | None = None,
        inline: Sequence[ExtensionFactory | InlineExtension] = (),
        import_module: ImportModule = import_extension,
    ) -> LoadExtensionsResult:
        """Load, importing only what is not remembered; every factory runs again, in a container of its own."""
        # TODO(23.2): take the token once, compare it at each read and each write.
        raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")

    def clear(self) -> None:
        """Forget every factory, those of loads under way too."""
        # TODO(23.2): a new generation.
        raise NotImplementedError("Lab 23.2 load_extensions 尚未实现")


async def discover_and_load_extensions(
    paths: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    agent_dir: str | os.PathLike[str],
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
