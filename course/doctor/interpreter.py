"""The interpreter: its version, its packages, and what in it could serve other code than the practice's."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from course.doctor.finding import Finding, bad, ok, warn
from course.doctor.scene import Scene
from course.errors import EnvironmentFault
from course.leftovers import temporary_folder
from course.process import child_environment, run_process
from course.request import command_line
from course.runner import can_fork

OLDEST, NEWEST = (3, 11), (3, 13)
_PROBE = Path(__file__).with_name("probe.py")
_MODULES = {
    "pytest": "pytest",
    "pytest-asyncio": "pytest_asyncio",
    "hypothesis": "hypothesis",
    "PyYAML": "yaml",
    "jsonschema": "jsonschema",
    "pathspec": "pathspec",
}
_OWN_PLUGINS = {"asyncio", "hypothesispytest"}
_SYSTEM = ("/usr/lib/python3", "/etc/python3")


class Interpreter:
    """The interpreter that runs the engine and every test of the learner's."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @cached_property
    def _probed(self) -> dict[str, Any]:
        """What the probe saw. Raises EnvironmentFault where it could not look."""
        source = self._scene.source
        question = {
            "modules": _MODULES,
            "package": self._scene.package,
            "source": str(source) if source is not None else None,
        }
        with temporary_folder("doctor") as folder:
            command: list[str | Path] = [sys.executable, "-P", _PROBE, json.dumps(question)]
            finished = run_process(command, cwd=folder, env=child_environment(), deadline=60)
        try:
            answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
        except (ValueError, IndexError) as error:
            reason = (finished.stderr.strip().splitlines() or [f"status {finished.status}"])[-1]
            raise EnvironmentFault(
                f"{sys.executable} can't start a plain program: {reason}.",
                "Make a new virtual environment and install the course there.",
            ) from error
        return answer

    def version(self) -> Iterator[Finding]:
        """Whether this Python is one that the course is made for."""
        seen = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
        span = ", ".join(f"{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1))
        if sys.version_info < OLDEST:
            yield bad("Python", seen, f"Install Python {span} and the course in it.")
        elif sys.version_info[:2] > NEWEST:
            yield warn("Python", f"{seen}; the course was tried on {span}", f"Use Python {span}.")
        else:
            yield ok("Python", seen)

    def packages(self) -> Iterator[Finding]:
        """Whether pytest, its plugins and what the tests need can be imported, in fitting versions."""
        wanted = _requirements()
        for name, found in self._probed["modules"].items():
            requirement = wanted.pop(name.lower(), None)
            install = command_line("pip", "install", str(requirement or name))
            if "error" in found:
                yield bad(name, f"can't be imported: {found['error']}", install)
            elif not _fits(requirement, found["version"]):
                yield warn(name, f"{found['version']}, the course asks for {requirement}", install)
            else:
                yield ok(name, found["version"])
        yield from _engine_packages(wanted)
        others = [name for name in self._probed["plugins"] if name not in _OWN_PLUGINS]
        if others:
            yield ok("plugins", f"plain pytest also loads {', '.join(others)}; `course check` doesn't")

    def shadows(self) -> Iterator[Finding]:
        """Whether another copy of the package under study could be imported instead of the practice's."""
        package, source = self._scene.package, self._scene.source
        if not package:
            return
        name = f"{package} elsewhere"
        chosen, elsewhere = self._probed.get("chosen"), self._probed["elsewhere"]
        inside = source is not None and elsewhere is not None and _lies_in(elsewhere, source)
        remove = command_line("pip", "uninstall", _distribution_of(package))
        if self._probed["loaded"]:
            yield bad(
                name, "it is imported before anything else runs, by a .pth file or sitecustomize", remove
            )
        elif source is not None and chosen is not None and not _lies_in(chosen, source):
            yield bad(name, f"{chosen} is imported instead of the practice's", remove)
        elif elsewhere is not None and not inside:
            yield warn(name, f"{elsewhere} can be imported too; outside of a practice's runs it is", remove)
        else:
            yield ok(name, "no other copy can be imported")

    def startup(self) -> Iterator[Finding]:
        """Whether code runs whenever this interpreter starts."""
        files = [*self._probed["startup"]]
        customize = [origin for origin in self._probed["customize"].values() if origin is not None]
        files += [origin for origin in customize if not origin.startswith(_SYSTEM)]
        if files:
            seen = f"code runs whenever Python starts: {', '.join(files)}"
            yield warn("start-up code", seen, "Remove it, or use a fresh virtual environment.")
        else:
            yield ok("start-up code", "none beyond the usual")

    def forks(self) -> Iterator[Finding]:
        """Whether warm runs are possible."""
        if can_fork():
            yield ok("fork", "available: watch and drill run warm")
        else:
            yield warn("fork", "not available: watch and drill run cold, slower", "Use Linux, macOS or WSL.")


def _engine_packages(wanted: Mapping[str, Requirement]) -> Iterator[Finding]:
    """Whether the engine's own packages are there, in one line."""
    unfit = [
        str(requirement)
        for name, requirement in wanted.items()
        if (version := _installed(name)) is None or not _fits(requirement, version)
    ]
    if unfit:
        install = command_line("pip", "install", *unfit)
        yield warn("the engine's packages", f"missing or of another version: {', '.join(unfit)}", install)
    elif wanted:
        yield ok("the engine's packages", f"{len(wanted)} of {len(wanted)}")


def _lies_in(file: str, folder: Path) -> bool:
    return Path(file).resolve().is_relative_to(folder.resolve())


def _distribution_of(package: str) -> str:
    names = importlib.metadata.packages_distributions().get(package, [])
    return names[0] if names else package


def _requirements() -> dict[str, Requirement]:
    """What the course asks of its packages, by lower-case name; empty where it is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        lines = importlib.metadata.requires("course-lab-kit") or []
        wanted = [Requirement(line) for line in lines if "extra ==" not in line]
        return {requirement.name.lower(): requirement for requirement in wanted}
    return {}


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fits(requirement: Requirement | None, version: str) -> bool:
    return requirement is None or requirement.specifier.contains(version, prereleases=True)
