"""What surrounds a practice: variables, git, pytest's configuration files, the file system, the terminal."""

from __future__ import annotations

import configparser
import locale
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from course.doctor.finding import Finding, bad, ok, warn
from course.doctor.scene import Scene
from course.errors import EnvironmentFault
from course.git import Git
from course.request import from_here

OLDEST_GIT = (2, 29)
_PLAIN_PYTEST = "it changes what plain pytest does; `course check` is not led by it"
_VARIABLES = {
    "PYTEST_ADDOPTS": _PLAIN_PYTEST,
    "PYTEST_PLUGINS": _PLAIN_PYTEST,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "plain pytest then lacks its asyncio plugin",
    "PYTHONHOME": "it leads Python to another standard library",
    "PYTHONWARNINGS": "it changes which warnings are errors",
    "GIT_DIR": "it leads your own git commands into another repository",
    "GIT_WORK_TREE": "it leads your own git commands into another tree",
    "GIT_INDEX_FILE": "it gives your own git commands another index",
}
_PYTEST_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_SILENT = re.compile(r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|vboxsf|vmhgfs|drvfs|fuse\..*|virtiofs|lustre")


class Surroundings:
    """Everything around the practice that can get in the way."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        # As the user has it: the first git command takes git's variables out of this process.
        self._variables = dict(os.environ)

    def git(self) -> Iterator[Finding]:
        """Whether git is there and new enough."""
        try:
            text = Git(Path.cwd()).run("version")
        except ImportError as error:  # GitPython reads the version as it is imported
            text = f"it can't be used: {error}"
        found = re.search(r"(\d+)\.(\d+)", text)
        if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
            yield bad("git", text, f"Install git {OLDEST_GIT[0]}.{OLDEST_GIT[1]} or newer.")
        else:
            yield ok("git", text.removeprefix("git version "))

    def variables(self) -> Iterator[Finding]:
        """Whether an environment variable leads runs astray."""
        yield from self._python_path()
        yield from self._optimize()
        for name, why in _VARIABLES.items():
            if self._variables.get(name):
                yield warn(name, f"is set to {self._variables[name]!r}: {why}", f"unset {name}")
        language, course = self._variables.get("COURSE_LANG"), self._scene.course
        if language and course is not None and language not in course.manifest.languages:
            known = ", ".join(course.manifest.languages)
            yield warn("COURSE_LANG", f"is {language!r}; the course has {known}", "unset COURSE_LANG")

    def _python_path(self) -> Iterator[Finding]:
        value = self._variables.get("PYTHONPATH", "")
        package = self._scene.package
        served = [
            entry
            for entry in value.split(os.pathsep)
            if entry and package and (Path(entry, package).is_dir() or Path(entry, f"{package}.py").is_file())
        ]
        if served:
            seen = f"leads to another {package} in {', '.join(served)}; `course check` is not led by it"
            yield warn("PYTHONPATH", seen, "unset PYTHONPATH")
        elif value:
            yield warn("PYTHONPATH", f"is set to {value!r}: {_PLAIN_PYTEST}", "unset PYTHONPATH")
        else:
            yield ok("PYTHONPATH", "not set")

    def _optimize(self) -> Iterator[Finding]:
        value = self._variables.get("PYTHONOPTIMIZE", "")
        if value and value != "0":
            seen = f"is set to {value!r}: plain pytest then skips assertions outside of test files"
            yield warn("PYTHONOPTIMIZE", seen, "unset PYTHONOPTIMIZE")

    def pytest_configuration(self) -> Iterator[Finding]:
        """Whether a configuration file or conftest.py that is not the practice's acts on plain pytest."""
        name, root = "pytest configuration", self._scene.root
        if root is None:
            return
        inside = [file for file in _PYTEST_FILES if (root / file).exists()]
        if inside:
            files = ", ".join(from_here(root / file) for file in inside)
            yield bad(
                name, f"{files} overrules the practice's pyproject.toml", f"rm {files.replace(',', '')}"
            )
        if not _configures_pytest(root / "pyproject.toml"):
            seen = "the practice's pyproject.toml configures no pytest: plain pytest looks further up"
            yield bad(
                name, seen, f"git -C {from_here(root)} restore --source=refs/course/start -- pyproject.toml"
            )
        course = self._scene.course
        others = [folder for folder in root.parents if course is None or folder != course.root.resolve()]
        above = [str(file) for folder in others for file in _pytest_files(folder)]
        if above:
            seen = f"{', '.join(above)} above the practice; it acts on pytest runs from up there"
            yield warn(name, seen, f"Run pytest inside the practice: cd {from_here(root)}")
        elif not inside:
            yield ok(name, "the practice's own; none above it")

    def file_system(self) -> Iterator[Finding]:
        """Whether saves are noticed where the practice lies."""
        place = self._scene.root or self._scene.start
        kind = _file_system_of(place.resolve())
        if kind is None:
            yield ok("file system", "its kind is not told here; watch looks for itself")
        elif _SILENT.fullmatch(kind):
            seen = f"{kind}: it may not tell of saves, so that watch has to look again and again"
            yield warn("file system", seen, "Keep the practice on a local disk, or accept slower verdicts.")
        else:
            yield ok("file system", kind)

    def terminal(self) -> Iterator[Finding]:
        """Whether the course's texts can be shown."""
        encoding = sys.stdout.encoding or "unknown"
        preferred = locale.getpreferredencoding(False)
        names = {encoding.lower().replace("-", ""), preferred.lower().replace("-", "")}
        if names == {"utf8"}:
            yield ok("encoding", "UTF-8")
        else:
            seen = f"output {encoding}, files {preferred}: Chinese texts and some signs can't be shown"
            yield warn("encoding", seen, "export LC_ALL=C.UTF-8")


def _configures_pytest(pyproject: Path) -> bool:
    try:
        tool = tomllib.loads(pyproject.read_text("utf-8-sig")).get("tool", {})
    except (OSError, ValueError):
        return False
    return isinstance(tool, dict) and "pytest" in tool


def _pytest_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that pytest would be led by."""
    for name in (*_PYTEST_FILES, "conftest.py"):
        if (folder / name).is_file():
            yield folder / name
    if _configures_pytest(folder / "pyproject.toml"):
        yield folder / "pyproject.toml"
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(folder / name, "utf-8")
        except (OSError, configparser.Error, ValueError):
            continue
        if parser.has_section(section):
            yield folder / name


def _file_system_of(path: Path) -> str | None:
    """The kind of file system that a path lies on, None where the system doesn't tell."""
    try:
        lines = Path("/proc/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    best: tuple[int, str] | None = None
    for line in lines:
        fields = line.split(" ")
        mount = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[1]))
        if path.is_relative_to(mount) and (best is None or len(mount.parts) >= best[0]):
            best = (len(mount.parts), fields[2])
    return best[1] if best is not None else None


def learner_setting(root: Path, key: str) -> str | None:
    """A setting of git's as the learner's own commands see it: repository, then user, then system."""
    home = Path.home()
    user = os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    git = Git(root)
    for source in (
        ["--local"],
        ["--file", str(home / ".gitconfig"), "--includes"],
        ["--file", str(Path(user, "git", "config")), "--includes"],
        ["--system"],
    ):
        try:
            return git.run("config", *source, "--get", key)
        except EnvironmentFault:
            continue
    return None
