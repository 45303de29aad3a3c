"""Modules loaded from their source, whatever bytecode lies beside it.

Decision: bytecode is kept in a folder of the engine's own and found by the source's bytes, because the times
and sizes that Python goes by don't tell apart what was edited within a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.abc
import importlib.machinery
import marshal
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType
from typing import Any


class FreshLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from its source; `kept` is the folder for bytecode, None where there is none."""

    kept: Path | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if self.kept is None:
            return self.source_to_code(source, path)
        name = path.encode("utf-8", "surrogateescape") + b"\0" + source
        file = self.kept / hashlib.sha256(name).hexdigest()
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            code: CodeType = marshal.loads(file.read_bytes())
            return code
        code = self.source_to_code(source, path)
        with contextlib.suppress(OSError):
            partial = file.with_suffix(f".{os.getpid()}")
            partial.write_bytes(marshal.dumps(code))
            partial.replace(file)
        return code


_sources: set[str] = set()


def load_fresh_under(source: str) -> None:
    """Have every module below the folder `source` loaded so, from now on."""
    if source in _sources:
        return
    _sources.add(source)
    hook = importlib.machinery.FileFinder.path_hook(
        (FreshLoader, importlib.machinery.SOURCE_SUFFIXES),
        (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
    )

    def finder(path: str) -> Any:
        if path != source and not path.startswith(source + os.sep):
            raise ImportError
        return hook(path)

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()


def import_ahead(names: Iterable[str], *, barred: Iterable[str] = ()) -> None:
    """Import modules, as far as they come without a barred one; what fails is as if never tried."""
    finder = _Barred(barred)
    sys.meta_path.insert(0, finder)
    try:
        for name in names:
            try:
                importlib.import_module(name)
            except BaseException:  # noqa: BLE001 - a run imports it too, and testifies
                forget(name)
    finally:
        sys.meta_path.remove(finder)


def forget(package: str) -> None:
    """Have a module, and those below it, imported anew by the next who asks."""
    for name in [name for name in sys.modules if lies_in(name, package)]:
        del sys.modules[name]


def lies_in(name: str, package: str) -> bool:
    """Whether a module is a package, or one below it."""
    return name == package or name.startswith(f"{package}.")


class _Barred(importlib.abc.MetaPathFinder):
    """Has no module of these names imported."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise ImportError for a barred name, and leave others to the next finder."""
        if fullname in self._names:
            raise ImportError(f"{fullname} is not imported ahead")
