"""The one list of checks, run by people and by CI: `python tools/check.py`, or some by name."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
OTHER_PYTHONS = ("3.12", "3.13")
ELSEWHERE = [
    "labs",
    *(f"tests/test_{name}.py" for name in ("units", "stages", "trees", "manifest")),
]
SOURCES = ["course", "tools", "tests", "labs", "starters", "solutions", "checkpoints"]


class CheckFailed(Exception):
    """A check did not hold."""


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run one command with its output shown. Raises CheckFailed."""
    status = subprocess.call([str(part) for part in command], cwd=cwd, env={**os.environ, **(env or {})})
    if status != 0:
        raise CheckFailed(f"status {status}")


def tool(name: str) -> Path:
    """A console script of this environment."""
    return BIN / name


def lint() -> None:
    """Ruff's rules and format, over everything."""
    run(tool("ruff"), "check", *SOURCES)
    run(tool("ruff"), "format", "--check", *SOURCES)


def sizes() -> None:
    """The bounds on modules, functions and tests."""
    run(sys.executable, "tools/sizes.py")


def layers() -> None:
    """The engine's layers."""
    run(tool("lint-imports"), "--no-cache")


def types() -> None:
    """The engine's types, strictly."""
    run(tool("mypy"))


def library() -> None:
    """Types and layers of the reference, as the last checkpoint has it."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "reference"
        last = re.findall(r'"(\d+)"', (ROOT / "checkpoints" / "course.toml").read_text("utf-8"))[-1]
        run(sys.executable, "-m", "course", "checkpoint", last, "--export", tree, "--json")
        run(tool("mypy"), "--strict", "--config-file=", "src", cwd=tree)
        config = ROOT / "tools" / "library.importlinter.ini"
        run(
            tool("lint-imports"),
            "--no-cache",
            config,
            cwd=tree,
            env={"PYTHONPATH": str(tree / "src")},
        )


def tests() -> None:
    """Every test of the engine, and every lab test against the reference."""
    run(sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile")


def gate() -> None:
    """The author's gate over the shipped course."""
    run(sys.executable, "-m", "course", "verify")


def other_pythons() -> None:
    """Every lab test, and the engine's where Python itself matters, on the other interpreters at hand."""
    with ThreadPoolExecutor() as pool:
        # Side by side: pip keeps one processor busy, and not the other.
        waiting = [pool.submit(_on_python, version) for version in OTHER_PYTHONS]
        for future in waiting:
            future.result()


def _on_python(version: str) -> None:
    python = find_python(version)
    if python is None:
        print(f"Python {version} is not at hand: skipped", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        own = Path(folder, "bin", "python")
        run(own, "-m", "pip", "install", "-q", str(ROOT), *_needed_for_tests())
        spread = ("-n", "auto", "--dist", "loadfile")
        run(own, "-m", "pytest", "-q", *spread, "-p", "no:cacheprovider", *ELSEWHERE)


def _needed_for_tests() -> list[str]:
    """What of the dev extra these tests need; its checkers are heavy, and are not run there."""
    wanted = ("pytest-xdist", "pexpect")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    dev = project["project"]["optional-dependencies"]["dev"]
    return [requirement for requirement in dev if requirement.startswith(wanted)]


def find_python(version: str) -> str | None:
    """An interpreter of this version that really starts, on PATH or among pyenv's."""
    pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    for candidate in (
        shutil.which(f"python{version}"),
        *glob.glob(f"{pyenv}/versions/{version}.*/bin/python"),
    ):
        if candidate is not None:
            probe = subprocess.run(
                [candidate, "-c", "import venv, ensurepip"], capture_output=True, check=False
            )
            if probe.returncode == 0:
                return candidate
    return None


CHECKS: dict[str, Callable[[], None]] = {
    "lint": lint,
    "sizes": sizes,
    "layers": layers,
    "types": types,
    "library": library,
    "gate": gate,
    "tests": tests,
    "pythons": other_pythons,
}


def main(names: list[str]) -> int:
    """Run the named checks, or all, all of them even after a failure; give the exit status."""
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(CHECKS)}")
        return 2
    failed = []
    for name in names or CHECKS:
        print(f"== {name}: {(CHECKS[name].__doc__ or '').strip()}", flush=True)
        begun = time.monotonic()
        try:
            CHECKS[name]()
        except CheckFailed as failure:
            failed.append(name)
            print(f"== {name} FAILED: {failure}", flush=True)
        print(f"== {name}: {time.monotonic() - begun:.0f} s", flush=True)
    print(
        f"{len(names or CHECKS) - len(failed)} checks hold"
        + (f", failed: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
