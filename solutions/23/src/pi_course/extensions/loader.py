"""How a path becomes a running extension: a fresh module, its factory, one container for each run."""

# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH120 - as in packages

import builtins
import inspect
import itertools
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any, TypeAlias

from pi_course.extensions import packages
from pi_course.extensions.api import ExtensionAPI, ExtensionRuntime
from pi_course.extensions.sources import (
    Extension,
    LoadError,
    ResolvedPath,
    StrPath,
    canonical_path,
    is_virtual,
    synthetic_source_info,
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


# --- import ---
_PREFIX = "_pi_extension_"
_NO_FACTORY = "Extension does not export a valid factory function"
_numbers = itertools.count(1)


def import_extension(path: str, *, entry_points: packages.EntryPointIndex = entry_points) -> Any:
    """Import an extension anew and return its module, or what an entry point names.

    `path` is canonical: a file, a folder with an index, or `<entry-point:NAME>`, which alone is imported as
    installed modules are. Each call gives modules under names never used before, the helpers beside the file
    (`import helper`, `from . import helper`) included. Their source counts, never a `.pyc`: whole seconds and
    sizes judge that, so an edit could go unseen. They stay in `sys.modules`, as handlers may import later,
    unless the import fails. (Chapter 23, Lab 23.2)
    """
    if is_virtual(path):
        return _load_entry_point(path, entry_points)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # before the one that trusts a .pyc
    indexes = (os.path.join(path, name) for name in packages.INDEXES)
    file = next((each for each in indexes if os.path.isfile(each)), path)
    package = f"{_PREFIX}{next(_numbers)}"
    sys.modules[package] = module_from_spec(_folder_spec(package, os.path.dirname(file)))
    name = package if Path(file).name == "__init__.py" else f"{package}.{Path(file).stem.replace('.', '_')}"
    try:
        module = sys.modules[name] = module_from_spec(_file_spec(name, file))
        _Source(name, file).exec_module(module)
        return module
    except BaseException:
        for each in [each for each in sys.modules if each.partition(".")[0] == package]:
            del sys.modules[each]
        raise


def _load_entry_point(path: str, index: packages.EntryPointIndex) -> Any:
    offered = index(group=packages.ENTRY_POINT_GROUP)
    entries = [entry for entry in offered if path == f"<entry-point:{entry.name}>"]
    if not entries:
        raise LookupError(f"no installed distribution offers {path}")
    loaded = min(entries, key=lambda entry: entry.value).load()
    return loaded if isinstance(loaded, ModuleType) else SimpleNamespace(setup=loaded)


class _Source(SourceFileLoader):
    """Runs a file's source as it is now, in a module whose imports look beside the extension first."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _importer(module.__name__)}
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds what lies beside an extension, asking the file system each time; other names are not its own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith(_PREFIX):
            return None
        for stem in (os.path.join(folder, fullname.rpartition(".")[2]) for folder in path):
            for file in (os.path.join(stem, "__init__.py"), f"{stem}.py"):
                if os.path.isfile(file):
                    return _file_spec(fullname, file)
            if os.path.isdir(stem):
                return _folder_spec(fullname, stem)
        return None


def _file_spec(name: str, file: str) -> ModuleSpec:
    spec = spec_from_file_location(name, file, loader=_Source(name, file))
    assert spec is not None
    return spec


def _folder_spec(name: str, folder: str) -> ModuleSpec:
    """Return the spec of a package without code."""
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [folder]
    return spec


def _importer(module_name: str) -> Callable[..., ModuleType]:
    """Return the `__import__` of one extension: a name means what lies beside it, where there is such.

    A name of the standard library doesn't, a mere folder only where no installed package has its name.
    """
    package = module_name.partition(".")[0]

    @cache
    def is_beside(top: str) -> bool:
        if top in sys.stdlib_module_names:
            return False
        spec = find_spec(f"{package}.{top}")
        return spec is not None and (spec.loader is not None or find_spec(top) is None)

    def scoped_import(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level or not is_beside(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        module = builtins.__import__(f"{package}.{name}", globals, locals, fromlist)
        return module if fromlist else sys.modules[f"{package}.{top}"]

    return scoped_import


# --- load ---
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
    result = LoadExtensionsResult([], [], runtime or ExtensionRuntime())
    return await _Load(os.path.abspath(cwd), import_module, result).run(paths, inline)


class ExtensionLoader:
    """Loads as `load_extensions`, but remembers factories: canonical path to factory, never an extension.

    What is remembered holds for one cwd and until `clear()`; a load that was under way then neither reads nor
    writes any more. What failed is not remembered. (Chapter 23, Lab 23.2)
    """

    def __init__(self) -> None:
        self._factories: dict[str, ExtensionFactory] = {}
        self._token = ("", 0)  # cwd and generation

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
        where = canonical_path(cwd)
        if where != self._token[0]:
            self.clear()
            self._token = (where, self._token[1])
        token = self._token
        result = LoadExtensionsResult([], [], runtime or ExtensionRuntime())
        load = _Load(os.path.abspath(cwd), import_module, result, lambda: self._known(token))
        return await load.run(paths, inline)

    def _known(self, token: tuple[str, int]) -> dict[str, ExtensionFactory]:
        return self._factories if self._token == token else {}

    def clear(self) -> None:
        """Forget every factory, those of loads under way too."""
        self._factories.clear()
        self._token = (self._token[0], self._token[1] + 1)


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
    base, scan = os.path.abspath(cwd), packages.discover_extensions_in_dir
    found = scan(os.path.join(base, ".pi", "extensions")) if trusted is True else []
    found += scan(os.path.join(agent_dir, "extensions"))
    for path in (os.path.join(base, path) for path in paths):
        found += (packages.own_entries(path) or scan(path)) if os.path.isdir(path) else [path]
    once: dict[str, str] = {}
    for path in found:
        once.setdefault(canonical_path(path), path)
    return await load_extensions(list(once.values()), cwd=base, import_module=import_module)


@dataclass
class _Load:
    """One load: paths one after another, each ending as an extension or as an error."""

    cwd: str
    import_module: ImportModule
    result: LoadExtensionsResult
    factories: Callable[[], dict[str, ExtensionFactory]] = dict  # none is known, none is kept

    async def run(
        self, paths: Sequence[str | ResolvedPath], inline: Sequence[ExtensionFactory | InlineExtension]
    ) -> LoadExtensionsResult:
        enabled = [each for each in paths if isinstance(each, str) or each.enabled]
        for path in [each if isinstance(each, str) else each.path for each in enabled]:
            resolved = path if is_virtual(path) else canonical_path(os.path.join(self.cwd, path))
            factory = await self._add(path, resolved, partial(self._find, resolved))
            if factory is not None:
                self.factories()[resolved] = factory
        for number, item in enumerate(inline, 1):
            one = item if isinstance(item, InlineExtension) else InlineExtension(item)
            await self._add(path := f"<inline:{one.name or number}>", path, partial(getattr, one, "factory"))
        return self.result

    async def _find(self, resolved: str) -> Any:
        known = self.factories().get(resolved)
        return known or getattr(await _settle(self.import_module(resolved)), "setup", None)

    async def _add(self, path: str, resolved: str, find: Callable[[], Any]) -> ExtensionFactory | None:
        """Find and run a factory; return it where all went well."""
        extension = Extension(path, resolved, synthetic_source_info(path, resolved))
        api = ExtensionAPI(extension, self.result.runtime, cwd=self.cwd)
        try:
            factory: ExtensionFactory = await _settle(find())
            problem = "" if callable(factory) else f"{_NO_FACTORY}: {path}"
            await _settle(None if problem else factory(api))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - collected, and the next path goes on
            problem = f"Failed to load extension: {''.join(traceback.format_exception_only(error)).strip()}"
        except BaseException:
            api.discard()
            raise
        if problem:
            api.discard()
            self.result.errors.append(LoadError(path, problem))
            return None
        api.commit()
        self.result.extensions.append(extension)
        return factory


async def _settle(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
