"""Modules loaded from their source, whatever bytecode lies beside it.

It runs in the process that judges learner code and imports nothing of the engine. Decision: bytecode is kept
in a folder of the engine's own and found by the source's bytes, because the times and sizes that Python goes
by don't tell apart what was edited within a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import marshal
import os
import sys
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


def load_fresh_under(source: str) -> None:
    """Have every module below the folder `source` loaded so, from now on."""
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
