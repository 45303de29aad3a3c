"""Which extensions there are, in which order, and which are switched off; nothing is imported here.

Decision: `os.path`, not pathlib, because it answers "no" where `Path.is_file` raises: a folder without
permission, a name that is too long.
"""

# ruff: noqa: PTH100, PTH110, PTH111, PTH112, PTH113, PTH118, PTH119, PTH120

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from pathspec import GitIgnoreSpec
from pi_course.extensions.sources import LoadError, PathMetadata, ResolvedPath, StrPath, canonical_path

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


# --- scans ---
INDEXES = ("index.py", "__init__.py")
_IGNORE_FILES = (".gitignore", ".ignore", ".fdignore")


def discover_extensions_in_dir(root: StrPath, *, scandir: ScanDirectory = os.scandir) -> list[str]:
    """Return the entries of an extensions folder by the loader helper's plain rules, one level deep.

    These are `*.py` files, and of each sub-folder what its manifest declares (`[tool.pi] extensions` in
    pyproject.toml), else its `index.py`, else its `__init__.py`. Names that begin with a dot, `__pycache__`
    and `node_modules` are never taken; links are followed. Sorted by the bytes of their names; nothing where
    the folder is missing or can't be read. (Chapter 23, Lab 23.1)
    """
    return list(_scan(os.fspath(root), GitIgnoreSpec([]), scandir))


def collect_auto_extensions(root: StrPath, *, scandir: ScanDirectory = os.scandir) -> list[str]:
    """Return the entries of an extensions folder by the production rules.

    The folder's own manifest, or else its own index, is the whole answer where there is one. Otherwise as in
    `discover_extensions_in_dir`, without what `.gitignore`, `.ignore` and `.fdignore` of this folder say, in
    this order and as one list of rules. Manifest entries are relative to the manifest's folder, need only
    exist, and (hardened: a package must not pick files elsewhere) never lead out of it.
    (Chapter 23, Lab 23.1)
    """
    folder = os.fspath(root)
    return own_entries(folder) or list(_scan(folder, _ignore_rules(folder), scandir))


def _scan(folder: str, ignored: GitIgnoreSpec, scandir: ScanDirectory) -> Iterator[str]:
    for name in _names(folder, scandir):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            if not ignored.match_file(f"{name}/"):
                yield from own_entries(path)
        elif name.endswith(".py") and os.path.isfile(path) and not ignored.match_file(name):
            yield path


def _names(folder: str, scandir: ScanDirectory) -> list[str]:
    """Return the names that may be candidates, in an order that no machine decides."""
    try:
        names = [entry.name for entry in scandir(folder)]
    except (OSError, ValueError):  # ValueError: a NUL byte in the path
        return []
    taken = (name for name in names if not name.startswith(".") and name not in _NEVER)
    return sorted(taken, key=os.fsencode)


_NEVER = ("__pycache__", "node_modules")


def own_entries(folder: str) -> list[str]:
    """Return what a folder's manifest declares, as far as it is there, else its index, else nothing."""
    declared = [os.path.normpath(os.path.join(folder, entry)) for entry in _manifest(folder)]
    inside = Path(canonical_path(folder))
    found = [
        path
        for path in declared
        if os.path.exists(path) and Path(canonical_path(path)).is_relative_to(inside)
    ]
    indexes = (os.path.join(folder, name) for name in INDEXES)
    return found or [path for path in indexes if os.path.isfile(path)][:1]


def _manifest(folder: str) -> list[str]:
    """Return `[tool.pi] extensions` of a pyproject.toml; anything but a list of strings counts as absent."""
    text = _read_text(os.path.join(folder, "pyproject.toml"))
    try:
        value = tomllib.loads(text)["tool"]["pi"]["extensions"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return value if isinstance(value, list) and all(isinstance(each, str) for each in value) else []


def _ignore_rules(folder: str) -> GitIgnoreSpec:
    lines = [line for name in _IGNORE_FILES for line in _read_text(os.path.join(folder, name)).split("\n")]
    return GitIgnoreSpec.from_lines(line for line in lines if _is_rule(line))


def _is_rule(line: str) -> bool:
    """Tell whether a line can be read as a rule; git passes over the others, too."""
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


def _read_text(path: str) -> str:
    """Return a file's text, or none where it is missing, unreadable or no regular file."""
    if not os.path.isfile(path):  # a pipe would wait for ever
        return ""
    try:
        return Path(path).read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError:
        return ""


# --- resolution ---
@dataclass(frozen=True)
class _Scope:
    """One scope's settings, and the directory that its relative paths and patterns belong to."""

    name: Literal["project", "user"]
    base: str
    settings: ExtensionSettings
    scandir: ScanDirectory

    def local(self) -> Iterator[ResolvedPath]:
        """Return what the settings name and what lies in the extensions folder."""
        plain, patterns = _split(self.settings.extensions)
        named = [path for entry in plain for path in _expand(_absolute(entry, self.base), self.scandir)]
        found = collect_auto_extensions(os.path.join(self.base, "extensions"), scandir=self.scandir)
        for source, paths in (("local", named), ("auto", found)):
            metadata = PathMetadata(source, self.name, "top-level", self.base)
            yield from (
                ResolvedPath(path, metadata, _is_enabled(path, self.base, patterns)) for path in paths
            )

    def packages(self) -> Iterator[ResolvedPath]:
        """Return what the package folders offer: by their manifest or index, in `extensions`, or flat."""
        plain, patterns = _split(self.settings.packages)
        for entry in plain:
            root = _absolute(entry, self.base)
            nested = os.path.join(root, "extensions")
            flat = bool(own_entries(root)) or not os.path.isdir(nested)
            metadata = PathMetadata(entry, self.name, "package", root)
            for path in _expand(root if flat else nested, self.scandir):
                yield ResolvedPath(path, metadata, _is_enabled(path, root, patterns))


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
    found, errors = _command_line(cli, os.path.abspath(cwd), scandir)
    if not no_extensions:
        own = _Scope("project", os.path.join(os.path.abspath(cwd), ".pi"), project, scandir)
        users = _Scope("user", os.path.abspath(agent_dir), user, scandir)
        for scope in [own, users] if trusted is True else [users]:
            found += [*scope.packages(), *scope.local()]
        found += _installed(entry_points, user.packages if trusted is True else ["!*"], errors)
    unique: dict[str, ResolvedPath] = {}
    for each in sorted(found, key=_rank):
        unique.setdefault(canonical_path(each.path), each)
    return ResolvedExtensions(list(unique.values()), errors)


def _rank(path: ResolvedPath) -> int:
    metadata = path.metadata
    if metadata.scope == "temporary":
        return -1
    if metadata.origin == "package":
        return 4
    return (0 if metadata.scope == "project" else 2) + (0 if metadata.source == "local" else 1)


def _command_line(
    cli: Sequence[str], cwd: str, scandir: ScanDirectory
) -> tuple[list[ResolvedPath], list[LoadError]]:
    found, errors = [], []
    for entry in cli:
        path = _absolute(entry, cwd)
        if not os.path.exists(path):
            errors.append(LoadError(path, f"Extension path does not exist: {path}"))
            continue
        is_folder = os.path.isdir(path)
        metadata = PathMetadata("cli", "temporary", "top-level", path if is_folder else os.path.dirname(path))
        found += [ResolvedPath(each, metadata, True) for each in _expand(path, scandir) or [path]]
    return found, errors


def _installed(
    index: EntryPointIndex, patterns: Sequence[str], errors: list[LoadError]
) -> Iterator[ResolvedPath]:
    """Read the names of the installed distributions' entry points, and no more."""
    try:
        names = sorted({each.name for each in index(group=ENTRY_POINT_GROUP)}, key=os.fsencode)
    except Exception as error:  # noqa: BLE001 - damage of one distribution can show itself in many ways
        errors.append(LoadError("<entry-points>", f"Failed to read entry points: {error}"))
        return
    metadata = PathMetadata("entry-point", "user", "package", None)
    for path in (f"<entry-point:{name}>" for name in names):
        yield ResolvedPath(path, metadata, _is_enabled(path, "", _split(patterns)[1]))


def _expand(path: str, scandir: ScanDirectory) -> list[str]:
    """Return what a path stands for: a folder for its entries, a file for itself, else nothing."""
    if os.path.isdir(path):
        return collect_auto_extensions(path, scandir=scandir)
    return [path] if os.path.exists(path) else []


def _absolute(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def _split(entries: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part plain paths from patterns."""
    patterns = [entry for entry in entries if entry[:1] in ("!", "+", "-")]
    return [entry for entry in entries if entry and entry not in patterns], patterns


def _is_enabled(path: str, base: str, patterns: Sequence[str]) -> bool:
    forms = (path, os.path.basename(path), os.path.relpath(path, base) if base else path)
    enabled = True
    for sign in "!+-":  # each kind overrules those before it, wherever it stands
        for pattern in (each[1:] for each in patterns if each[:1] == sign):
            same = pattern == path or canonical_path(_absolute(pattern, base)) == canonical_path(path)
            if any(fnmatchcase(form, pattern) for form in forms) if sign == "!" else same:
                enabled = sign == "+"
    return enabled
