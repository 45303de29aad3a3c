"""Which extensions there are, in which order, and which are switched off; nothing is imported here."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, TypeAlias

from pi_course.extensions.sources import LoadError, ResolvedPath, StrPath

ENTRY_POINT_GROUP = "pi.extensions"


class Entry(Protocol):
    """What is used of an `os.DirEntry`."""

    @property
    def name(self) -> str:
        """The bare name."""


ScanDirectory: TypeAlias = Callable[[str], Iterable[Entry]]  # as os.scandir
EntryPointIndex: TypeAlias = Callable[..., Iterable[EntryPoint]]  # as importlib.metadata.entry_points


@dataclass
class ExtensionSettings:
    """One scope's settings: paths, relative to the scope's base directory, and patterns among them.

    The base directory is `<cwd>/.pi` or `agent_dir`. `extensions` are files and folders, `packages` local
    package folders. The patterns of each list judge what came in by it; those of `extensions` also judge what
    was found in the scope's extensions folder, those of the user's `packages` also the entry points.
    """

    extensions: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


@dataclass
class ResolvedExtensions:
    """All paths in their final order, disabled ones too, and what was asked for in vain."""

    paths: list[ResolvedPath]
    errors: list[LoadError]


def discover_extensions_in_dir(root: StrPath, *, scandir: ScanDirectory = os.scandir) -> list[str]:
    """Return the entries of an extensions folder by the loader helper's plain rules, one level deep.

    These are `*.py` files, and of each sub-folder what its manifest declares (`[tool.pi] extensions` in
    pyproject.toml), else its `index.py`, else its `__init__.py`. Names that begin with a dot, `__pycache__`
    and `node_modules` are never taken; links are followed. Sorted by the bytes of their names; nothing where
    the folder is missing or can't be read. (Chapter 23, Lab 23.1)
    """
    # TODO(23.1): scan one level.
    raise NotImplementedError("Lab 23.1 resolve_extensions 尚未实现")


def collect_auto_extensions(root: StrPath, *, scandir: ScanDirectory = os.scandir) -> list[str]:
    """Return the entries of an extensions folder by the production rules.

    The folder's own manifest, or else its own index, is the whole answer where there is one. Otherwise as in
    `discover_extensions_in_dir`, without what `.gitignore`, `.ignore` and `.fdignore` of this folder say, in
    this order and as one list of rules. Manifest entries are relative to the manifest's folder, need only
    exist, and (hardened: a package must not pick files elsewhere) never lead out of it.
    (Chapter 23, Lab 23.1)
    """
    # TODO(23.1): the folder itself, or else one level.
    raise NotImplementedError("Lab 23.1 resolve_extensions 尚未实现")


def resolve_extensions(  # noqa: PLR0913 - each is an option of its own
    *,
    cwd: StrPath,
    agent_dir: StrPath,
    project: ExtensionSettings,
    user: ExtensionSettings,
    cli: Sequence[str] = (),
    trusted: bool = False,
    no_extensions: bool = False,
    entry_points: EntryPointIndex = entry_points,
    scandir: ScanDirectory = os.scandir,
) -> ResolvedExtensions:
    """Return every extension path, best rank first and one for each canonical path, with its metadata.

    Order: `cli` as given; project settings, project folder (`<cwd>/.pi/extensions`); user settings, user
    folder (`<agent_dir>/extensions`); packages, the project's first; `<entry-point:NAME>` for each that an
    installed distribution offers. Then patterns: `!glob` (of the relative path, the name or the whole path)
    disables, `+path` enables, `-path` disables for good. Disabled paths stay in the list.

    A missing path of the settings is passed over, a missing CLI path is an error. `no_extensions` leaves the
    CLI paths only. Without `trusted` nothing of the project is looked at, and entry points are listed as
    disabled (hardened: the environment is often the project's own). (Chapter 23, Lab 23.1)
    """
    # TODO(23.1): collect, rank, leave one for each canonical path.
    raise NotImplementedError("Lab 23.1 resolve_extensions 尚未实现")
