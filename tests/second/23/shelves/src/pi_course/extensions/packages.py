"""Which extensions there are, in which order, and which are switched off; nothing is imported here."""

# Paths are strings here, spelled as they were given.
# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH118, PTH119, PTH120, PTH123

import fnmatch
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeAlias

from pathspec import GitIgnoreSpec
from pi_course.extensions.sources import (
    EXTENSION_FAULTS,
    LoadError,
    PathMetadata,
    ResolvedPath,
    Scope,
    StrPath,
    canonical_path,
    described,
)

ENTRY_POINT_GROUP = "pi.extensions"
INDEXES = ("index.py", "__init__.py")

_MANIFEST = "pyproject.toml"
_IGNORE_FILES = (".gitignore", ".ignore", ".fdignore")
_NEVER = ("__pycache__", "node_modules")


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
    return list(_one_level(os.fspath(root), scandir))


def collect_auto_extensions(root: StrPath, *, scandir: ScanDirectory = os.scandir) -> list[str]:
    """Return the entries of an extensions folder by the production rules.

    The folder's own manifest, or else its own index, is the whole answer where there is one. Otherwise as in
    `discover_extensions_in_dir`, without what `.gitignore`, `.ignore` and `.fdignore` of this folder say, in
    this order and as one list of rules. Manifest entries are relative to the manifest's folder, need only
    exist, and (hardened: a package must not pick files elsewhere) never lead out of it.
    (Chapter 23, Lab 23.1)
    """
    folder = os.fspath(root)
    return own_entries(folder) or list(_one_level(folder, scandir, _ignore_rules(folder)))


def resolve_extensions(
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
    here = os.path.abspath(cwd)
    scan = partial(collect_auto_extensions, scandir=scandir)
    errors: list[LoadError] = []
    found = list(_command_line(here, cli, scan, errors))
    if not no_extensions:
        gated = [_Scope("project", os.path.join(here, ".pi"), project, scan)] if trusted is True else []
        scopes = [*gated, _Scope("user", os.path.abspath(agent_dir), user, scan)]
        for scope in scopes:
            found += _switched(scope.top_level(), scope.settings.extensions)
        for scope in scopes:
            found += _switched(scope.packaged(), scope.settings.packages)
        offers = _switched(_offers(entry_points, errors), user.packages)
        found += [offer if trusted is True else replace(offer, enabled=False) for offer in offers]
    first_by_file: dict[str, ResolvedPath] = {}
    for each in found:  # best rank first, so who comes first stays
        first_by_file.setdefault(canonical_path(each.path), each)
    return ResolvedExtensions(list(first_by_file.values()), errors)


# --- scans ---
_Scan: TypeAlias = Callable[[str], list[str]]
_Ignores: TypeAlias = Callable[[str], bool]  # of a path relative to the folder that is scanned


def own_entries(folder: str) -> list[str]:
    """Return what a folder offers by itself: what its manifest declares and has, else its one index."""
    declared = [path for entry in _declared(folder) if (path := _declared_path(folder, entry)) is not None]
    return declared or _index(folder)


def _one_level(root: str, scandir: ScanDirectory, ignores: _Ignores = lambda path: False) -> Iterator[str]:
    """Go through a folder's files and the own entries of its sub-folders."""
    for name in _names(root, scandir):
        path = os.path.join(root, name)
        if os.path.isdir(path):
            if not ignores(f"{name}/"):
                yield from (entry for entry in own_entries(path) if not ignores(os.path.relpath(entry, root)))
        elif name.endswith(".py") and os.path.isfile(path) and not ignores(name):
            yield path


def _names(folder: str, scandir: ScanDirectory) -> list[str]:
    """Return the candidates' names in the order of their bytes; none of a listing that breaks off."""
    try:
        listing: Any = scandir(folder)
        with listing if hasattr(listing, "__exit__") else nullcontext(listing) as entries:
            names = [entry.name for entry in entries]
    except (OSError, ValueError):
        return []
    return sorted(
        (name for name in names if not name.startswith(".") and name not in _NEVER), key=os.fsencode
    )


def _read(folder: str, name: str) -> bytes:
    """Return what a regular file holds, and nothing for all else; a pipe would have to be waited for."""
    path = os.path.join(folder, name)
    try:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return file.read()
    except (OSError, ValueError):
        pass
    return b""


def _declared(folder: str) -> list[str]:
    """Return the list of a folder's manifest; a manifest that isn't wholly right declares nothing."""
    try:
        table: Any = tomllib.loads(_read(folder, _MANIFEST).decode())
    except (ValueError, RecursionError):
        return []
    for key in ("tool", "pi", "extensions"):
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, list) and all(isinstance(entry, str) for entry in table) else []


def _declared_path(folder: str, entry: str) -> str | None:
    """Work out a declared entry on paper, then see whether it is there, and really in the folder."""
    base = os.path.abspath(folder)
    path = os.path.normpath(os.path.join(base, entry))
    if path.startswith(os.path.join(base, "")):
        path = os.path.join(folder, os.path.relpath(path, base))
    try:
        real, home = os.path.realpath(path, strict=True), os.path.realpath(folder, strict=True)
    except (OSError, ValueError):
        return None
    inside = real != home and os.path.commonpath([real, home]) == home
    return path if inside and (os.path.isfile(real) or _index(real)) else None


def _index(folder: str) -> list[str]:
    paths = (os.path.join(folder, name) for name in INDEXES)
    return [path for path in paths if os.path.isfile(path)][:1]


def _ignore_rules(folder: str) -> _Ignores:
    """Make one matcher of all ignore files of a folder; the last rule that matches decides."""
    rules: list[str] = []
    for name in _IGNORE_FILES:
        text = os.fsdecode(_read(folder, name).removeprefix(b"\xef\xbb\xbf"))
        rules += filter(_is_rule, (line.removesuffix("\r") for line in text.split("\n")))
    return GitIgnoreSpec.from_lines(rules).match_file if rules else lambda path: False


def _is_rule(line: str) -> bool:
    """Tell whether a line can be read as a rule, so that a bad one takes no other along."""
    try:
        GitIgnoreSpec.from_lines([line])
    except Exception:  # noqa: BLE001 - whatever the library finds wrong with it, one line is lost
        return False
    return True


# --- where paths come from ---
def _standing_for(path: str, scan: _Scan) -> list[str]:
    """Return the file itself, or what a folder has; nothing for what is missing or neither."""
    return scan(path) if os.path.isdir(path) else [path] if os.path.isfile(path) else []


def _on_paper(base: str, path: str) -> str:
    return os.path.normpath(os.path.join(base, path))


def _command_line(
    cwd: str, cli: Sequence[str], scan: _Scan, errors: list[LoadError]
) -> Iterator[ResolvedPath]:
    for path in (_on_paper(cwd, given) for given in cli if given):
        if not os.path.exists(path):
            errors.append(LoadError(path, f"Extension path does not exist: {path}"))
            continue
        base = path if os.path.isdir(path) else os.path.dirname(path)
        metadata = PathMetadata("cli", "temporary", "top-level", base)
        yield from (ResolvedPath(each, metadata, True) for each in _standing_for(path, scan) or [path])


@dataclass(frozen=True)
class _Scope:
    """The project's or the user's own sources."""

    name: Scope
    base: str
    settings: ExtensionSettings
    scan: _Scan

    def top_level(self) -> Iterator[ResolvedPath]:
        """What the settings name, then what the scope's extensions folder holds."""
        local = PathMetadata("local", self.name, "top-level", self.base)
        for entry in _plain(self.settings.extensions):
            paths = _standing_for(_on_paper(self.base, entry), self.scan)
            yield from (ResolvedPath(path, local, True) for path in paths)
        auto = replace(local, source="auto")
        for path in self.scan(os.path.join(self.base, "extensions")):
            yield ResolvedPath(path, auto, True)

    def packaged(self) -> Iterator[ResolvedPath]:
        """What each package offers by the first form it has."""
        for entry in _plain(self.settings.packages):
            package = _on_paper(self.base, entry)
            inner = os.path.join(package, "extensions")
            base = package if os.path.isdir(package) else os.path.dirname(package)
            by_form = os.path.isdir(inner) and not own_entries(package)
            paths = _standing_for(inner if by_form else package, self.scan)
            metadata = PathMetadata(entry, self.name, "package", base)
            yield from (ResolvedPath(path, metadata, True) for path in paths)


def _offers(index: EntryPointIndex, errors: list[LoadError]) -> list[ResolvedPath]:
    """List what installed distributions offer, by name alone."""
    try:
        offered = {entry_point.name for entry_point in index(group=ENTRY_POINT_GROUP)}
        names = sorted(offered, key=os.fsencode)
    except EXTENSION_FAULTS as error:
        label = f"<entry-points:{ENTRY_POINT_GROUP}>"
        errors.append(LoadError(label, f"Entry points can't be listed: {described(error)}"))
        return []
    metadata = PathMetadata("entry-point", "user", "package", None)
    return [ResolvedPath(f"<entry-point:{name}>", metadata, True) for name in names]


# --- patterns ---
def _plain(entries: Iterable[str]) -> list[str]:
    return [entry for entry in entries if entry and entry[0] not in "!+-"]


def _is_named(pattern: str, path: str, base: str | None) -> bool:
    return pattern == path if base is None else _on_paper(base, pattern) == os.path.normpath(path)


def _is_matched(pattern: str, path: str, base: str | None) -> bool:
    spellings = {path} if base is None else {path, os.path.relpath(path, base), os.path.basename(path)}
    return any(fnmatch.fnmatchcase(spelling, pattern) for spelling in spellings)


_SWITCHES: tuple[tuple[str, Callable[[str, str, str | None], bool], bool], ...] = (
    ("!", _is_matched, False),
    ("+", _is_named, True),
    ("-", _is_named, False),
)


def _switched(found: Iterable[ResolvedPath], entries: Sequence[str]) -> Iterator[ResolvedPath]:
    """Let a list's patterns judge what came in by it: kind by kind, wherever they stand."""
    for each in found:
        enabled = each.enabled
        for sign, applies, verdict in _SWITCHES:
            patterns = (entry[1:] for entry in entries if entry[:1] == sign and len(entry) > 1)
            if any(applies(pattern, each.path, each.metadata.base_dir) for pattern in patterns):
                enabled = verdict
        yield replace(each, enabled=enabled)
