"""How a path becomes a running extension: a fresh module, its factory, one container for each run."""

# Paths are strings here, spelled as they were given.
# ruff: noqa: PTH112, PTH113, PTH118, PTH119, PTH120, PTH122

import builtins
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import CodeType, ModuleType
from typing import Any, TypeAlias

from pi_course.extensions import packages
from pi_course.extensions.api import ExtensionAPI, ExtensionRuntime
from pi_course.extensions.sources import (
    EXTENSION_FAULTS,
    Extension,
    LoadError,
    ResolvedPath,
    StrPath,
    canonical_path,
    described,
    is_virtual,
    settle,
    synthetic_source_info,
)
from pi_course.resources import ExtensionError

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
    if is_virtual(path):
        return _import_entry_point(path, entry_points)
    file = canonical_path(path)
    if os.path.isdir(file):
        indexes = (os.path.join(file, name) for name in packages.INDEXES)
        file = next(filter(os.path.isfile, indexes), file)
    if not os.path.isfile(file):
        raise ExtensionError(f"{path} is no file, and no folder with an index")
    return _import_file(file)


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
    load = _Load(runtime or ExtensionRuntime(), os.fspath(cwd), import_module, dict)
    return await load.all(paths, inline)


class ExtensionLoader:
    """Loads as `load_extensions`, but remembers factories: canonical path to factory, never an extension.

    What is remembered holds for one cwd and until `clear()`; a load that was under way then neither reads nor
    writes any more. What failed is not remembered. (Chapter 23, Lab 23.2)
    """

    def __init__(self) -> None:
        self._cwd: str | None = None
        self._generation: _Factories = {}  # what is remembered is its own token: a new one is a new dict

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
        folder = canonical_path(cwd)
        if folder != self._cwd:
            self._cwd = folder
            self.clear()
        mine = self._generation

        def remembered() -> _Factories:
            return mine if mine is self._generation else {}

        load = _Load(runtime or ExtensionRuntime(), os.fspath(cwd), import_module, remembered)
        return await load.all(paths, inline)

    def clear(self) -> None:
        """Forget every factory, those of loads under way too."""
        self._generation = {}


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
    roots = [os.path.join(cwd, ".pi")] if trusted is True else []
    found = [
        path
        for root in [*roots, os.fspath(agent_dir)]
        for path in packages.discover_extensions_in_dir(os.path.join(root, "extensions"))
    ]
    for path in paths:
        folder = os.path.join(cwd, path)
        if not os.path.isdir(folder):
            found.append(path)
        else:
            found += packages.own_entries(folder) or packages.discover_extensions_in_dir(folder)
    once: dict[str, str] = {}
    for path in found:
        once.setdefault(canonical_path(path if is_virtual(path) else os.path.join(cwd, path)), path)
    return await load_extensions(list(once.values()), cwd=cwd, import_module=import_module)


# --- one load ---
_Factories: TypeAlias = MutableMapping[str, ExtensionFactory]  # by canonical path


@dataclass(frozen=True)
class _Load:
    """A load under way; `remembered` is asked anew at each read and each write."""

    runtime: ExtensionRuntime
    cwd: str
    import_module: ImportModule
    remembered: Callable[[], _Factories]

    async def all(
        self,
        paths: Sequence[str | ResolvedPath],
        inline: Sequence[ExtensionFactory | InlineExtension],
    ) -> LoadExtensionsResult:
        """Load one after another, and collect."""
        result = LoadExtensionsResult([], [], self.runtime)
        for path, brought in itertools.chain(_enabled(paths), _labelled(inline)):
            outcome = await self.one(path, brought)
            if isinstance(outcome, LoadError):
                result.errors.append(outcome)
            else:
                result.extensions.append(outcome)
        return result

    async def one(self, path: str, brought: InlineExtension | None) -> Extension | LoadError:
        """Load one, or say why it can't be."""
        known = canonical_path(path if is_virtual(path) else os.path.join(self.cwd, path))
        try:
            factory: Any = brought.factory if brought else self.remembered().get(known)
            if factory is None and brought is None:
                factory = await self.imported(known)
            if not callable(factory):
                return LoadError(path, f"Extension does not export a valid factory function: {path}")
            extension = await self.run(factory, path, known)
        except EXTENSION_FAULTS as error:
            self.remembered().pop(known, None)  # what it was before is no success any more
            return LoadError(path, f"Failed to load extension: {described(error)}")
        if brought is None:
            self.remembered()[known] = factory
        return extension

    async def imported(self, known: str) -> Any:
        """Import, and return what may be a factory: `setup`, or what an entry point names itself."""
        module = await settle(self.import_module(known))
        return module if is_virtual(known) and callable(module) else getattr(module, "setup", None)

    async def run(self, factory: ExtensionFactory, path: str, known: str) -> Extension:
        """Run a factory in a container of its own, and make what it did to shared state count, or not."""
        extension = Extension(path, known, synthetic_source_info(path, known))
        api = ExtensionAPI(extension, self.runtime, cwd=self.cwd)
        try:
            await settle(factory(api))
            api.commit()
        except BaseException:
            api.discard()
            raise
        return extension


def _enabled(paths: Sequence[str | ResolvedPath]) -> Iterator[tuple[str, None]]:
    for path in paths:
        if not isinstance(path, ResolvedPath):
            yield os.fspath(path), None
        elif path.enabled:
            yield path.path, None


def _labelled(
    inline: Sequence[ExtensionFactory | InlineExtension],
) -> Iterator[tuple[str, InlineExtension]]:
    for number, each in enumerate(inline, 1):
        brought = each if isinstance(each, InlineExtension) else InlineExtension(each)
        yield f"<inline:{brought.name or number}>", brought


# --- fresh modules ---
_FOLDERS: dict[str, str] = {}  # the root package of each extension, and the folder it stands for
_NUMBERS = itertools.count(1)
_NOT_LOCAL = sys.stdlib_module_names | {__name__.partition(".")[0]}  # what a helper can't stand in for


class _FreshSource(SourceFileLoader):
    """Compiles the source as it is, and lets the module's own imports look beside the extension first.

    Python asks a module's `__builtins__` for `__import__`, also when a handler imports much later.
    """

    def __init__(self, name: str, path: str, names: dict[str, Any]) -> None:
        super().__init__(name, path)
        self._names = names

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the compiled source; there is neither a look at a `.pyc` nor a new one."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with the builtins of its extension."""
        vars(module)["__builtins__"] = self._names
        super().exec_module(module)


class _HelperFinder:
    """Finds the modules of extensions by their full names, and nothing else."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return a helper's spec; no other finder is asked for one, as they believe a `.pyc`."""
        root, _, rest = fullname.partition(".")
        if root not in _FOLDERS:
            return None
        base = os.path.join(_FOLDERS[root], *rest.split("."))
        for file in (os.path.join(base, "__init__.py"), f"{base}.py"):
            if os.path.isfile(file):
                return _spec(fullname, file, vars(sys.modules[root])["__builtins__"])
        if not os.path.isdir(base):
            raise ModuleNotFoundError(f"No module named {rest!r} beside the extension", name=fullname)
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [base]
        return spec


def _spec(fullname: str, file: str, names: dict[str, Any]) -> ModuleSpec:
    is_package = os.path.basename(file) == "__init__.py"
    folders = [os.path.dirname(file)] if is_package else None
    loader = _FreshSource(fullname, file, names)
    spec = spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=folders)
    assert spec is not None  # there is a loader
    return spec


def _importer(package: str, folder: str) -> Callable[..., Any]:
    """Make the `__import__` of one extension: its helpers first, under names that only it has."""

    def is_local(top: str) -> bool:
        if top in _NOT_LOCAL:
            return False
        base = os.path.join(folder, top)
        if f"{package}.{top}" in sys.modules or os.path.isfile(f"{base}.py"):
            return True
        return os.path.isfile(os.path.join(base, "__init__.py")) or (
            os.path.isdir(base) and not _is_installed(top)
        )

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        _finder_is_asked()
        top = name.partition(".")[0]
        if level or not is_local(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        module = builtins.__import__(f"{package}.{name}", globals, locals, fromlist, 0)
        return module if fromlist else sys.modules[f"{package}.{top}"]

    return import_


def _is_installed(top: str) -> bool:
    """Tell an installed module from a mere folder on the path, no better than one beside it."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # ValueError: in sys.modules, without a spec
        return top in sys.modules
    return spec is not None and (spec.origin is not None or not spec.submodule_search_locations)


def _finder_is_asked() -> None:
    if _HelperFinder not in sys.meta_path:
        sys.meta_path.insert(0, _HelperFinder)


def _import_file(file: str) -> ModuleType:
    """Run a file in a package that nobody has had before; it stands for the file's folder."""
    names_to_be = (f"_pi_extension_{number}" for number in _NUMBERS)
    package = next(name for name in names_to_be if name not in sys.modules)
    folder, name = os.path.split(file)
    stem, suffix = os.path.splitext(name)
    names = {**vars(builtins), "__import__": _importer(package, folder)}
    inner = stem if suffix == ".py" and stem.isidentifier() else "__extension__"
    root = ModuleType(package)
    root.__spec__ = ModuleSpec(package, None, is_package=True)
    root.__package__, root.__path__ = package, [folder]
    fullname = package if name == "__init__.py" else f"{package}.{inner}"
    spec = _spec(fullname, file, names)
    module = module_from_spec(spec)
    vars(root)["__builtins__"] = vars(module)["__builtins__"] = names
    _FOLDERS[package] = folder
    _finder_is_asked()
    sys.modules[package] = root
    sys.modules[fullname] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException:
        del _FOLDERS[package]
        for each in [each for each in sys.modules if f"{each}.".startswith(f"{package}.")]:
            del sys.modules[each]
        raise
    if module is not sys.modules[package]:
        setattr(root, inner, module)
    return module


def _import_entry_point(label: str, index: packages.EntryPointIndex) -> Any:
    kind, _, name = label[1:-1].partition(":")
    offers = [each for each in index(group=packages.ENTRY_POINT_GROUP) if each.name == name]
    if kind != "entry-point" or not offers:
        raise ExtensionError(f"no installed distribution offers {label}")
    return min(offers, key=lambda each: each.value).load()
