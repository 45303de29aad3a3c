"""Looks at an interpreter from inside, in a process of its own.

It is run by its path and imports nothing of the engine. Its argument is JSON: modules to import, by
distribution; the package under study; the practice's src, if any. It prints one JSON document.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import site
import sys
from pathlib import Path
from typing import Any

_KNOWN_PTH = ("distutils-precedence.pth", "_virtualenv.pth", "__editable__", "a1_coverage.pth")


def modules(wanted: dict[str, str]) -> dict[str, dict[str, str]]:
    """Each distribution's version, or why its module can't be imported."""
    found = {}
    for distribution, module in wanted.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                importlib.import_module(module)
            found[distribution] = {"version": importlib.metadata.version(distribution)}
        except BaseException as error:  # noqa: BLE001 - a broken package may raise anything, sys.exit too
            found[distribution] = {"error": f"{type(error).__name__}: {error}"}
    return found


def origin(name: str) -> str | None:
    """Where a module would be imported from."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return spec.origin or (places[0] if places else None)


def startup_code() -> list[str]:
    """The .pth files that run code whenever this interpreter starts, well-known ones left out."""
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    found = []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.pth")):
            lines = file.read_text("utf-8", "replace").splitlines()
            code = any(line.startswith(("import ", "import\t")) for line in lines)
            if code and not file.name.startswith(_KNOWN_PTH):
                found.append(str(file))
    return found


def plugins() -> list[str]:
    """The plugins that plain pytest loads by itself."""
    return sorted({point.name for point in importlib.metadata.entry_points(group="pytest11")})


def look(question: dict[str, Any]) -> dict[str, Any]:
    """Answer everything that was asked."""
    package, source = question["package"], question["source"]
    answer: dict[str, Any] = {
        "loaded": package in sys.modules if package else False,
        "elsewhere": origin(package) if package else None,
        "customize": {name: origin(name) for name in ("sitecustomize", "usercustomize")},
        "startup": startup_code(),
        "plugins": plugins(),
    }
    if package and source:
        sys.path.insert(0, source)
        importlib.invalidate_caches()
        answer["chosen"] = origin(package)
    answer["modules"] = modules(question["modules"])
    return answer


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(json.loads(sys.argv[1]))) + "\n")
