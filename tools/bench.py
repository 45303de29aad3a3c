"""The measures: each a ratio against a yardstick of the same run, medians of paired runs.

`python tools/bench.py` makes a fresh environment, installs the project as a user does, and measures there.
Its status is 1 where a bound is missed. Groups by name: start, practice, check, drill, mutants, library,
resources, composition, extensions; and `gate`, only run by name and without a bound: each claim's seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAIRS = 7


@dataclass(frozen=True)
class Measure:
    """One ratio and its bound."""

    name: str
    value: float
    comparison: str
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound if self.comparison == "<=" else self.value >= self.bound


class Place:
    """A fresh environment with the project installed, and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "env" / "bin" / "python"
        self.env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "PYTEST", "COURSE_", "GIT_"))
        }
        self.env |= {
            "COURSE_CACHE_DIR": str(folder / "cache"),
            "PATH": f"{folder / 'env' / 'bin'}:{os.environ['PATH']}",
        }

    def install(self) -> None:
        """Make the environment and install the project, not editable."""
        subprocess.run([sys.executable, "-m", "venv", self.folder / "env"], check=True)
        self.run(self.python, "-m", "pip", "install", "-q", ROOT)

    def run(self, *command: str | Path, cwd: Path | None = None, ok: tuple[int, ...] = (0,)) -> float:
        """Run a command and give its seconds. Raises where its status is not one of `ok`."""
        begun = time.perf_counter()
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd or self.folder,
            env=self.env,
            capture_output=True,
            check=False,
        )
        seconds = time.perf_counter() - begun
        if done.returncode not in ok:
            raise SystemExit(
                f"{command} ended with {done.returncode}:\n{done.stdout.decode()}{done.stderr.decode()}"
            )
        return seconds

    def course(self, *arguments: str | Path, cwd: Path | None = None, ok: tuple[int, ...] = (0,)) -> float:
        """Run the `course` command and give its seconds."""
        return self.run(self.folder / "env" / "bin" / "course", *arguments, cwd=cwd, ok=ok)

    def output(self, *arguments: str | Path) -> str:
        """Run the `course` command and give what it printed."""
        command = [str(part) for part in (self.folder / "env" / "bin" / "course", *arguments)]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, check=False)
        return done.stdout.decode()


def ratio(ours: Callable[[], float], yardstick: Callable[[], float], pairs: int = PAIRS) -> float:
    """The median of our seconds by the yardstick's, measured in turn after one warm-up each."""
    ours()
    yardstick()
    return statistics.median(ours() / yardstick() for _ in range(pairs))


def start(place: Place) -> Iterator[Measure]:
    """The command's start-up against importing what it can't do without."""

    def bare() -> float:
        return place.run(place.python, "-c", "import click, rich.console")

    yield Measure(
        "course --help / import click, rich.console", ratio(lambda: place.course("--help"), bare), "<=", 2.5
    )
    yield Measure(
        "course list / import click, rich.console", ratio(lambda: place.course("list"), bare), "<=", 2.5
    )


def practice(place: Place) -> Iterator[Measure]:
    """A practice, cache warm and cold, against Copier and git making the same files."""
    count = iter(range(10_000))
    place.course("practice", "12", "template")
    shutil.rmtree(place.folder / "template" / ".git")

    def ours() -> float:
        return place.course("practice", "12", f"practice-{next(count)}")

    def cold() -> float:
        shutil.rmtree(place.folder / "cache", ignore_errors=True)
        return ours()

    def copier() -> float:
        target = place.folder / f"copied-{next(count)}"
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
        return (
            place.run(
                place.folder / "env" / "bin" / "copier", "copy", "--quiet", place.folder / "template", target
            )
            + place.run("git", "init", "--quiet", cwd=target)
            + place.run("git", "add", "-A", cwd=target)
            + place.run("git", *identity, "commit", "--quiet", "-m", "start", cwd=target)
        )

    yield Measure("course practice, warm / copier copy and git commit", ratio(ours, copier), "<=", 0.5)
    yield Measure("course practice, cold / copier copy and git commit", ratio(cold, copier), "<=", 3.0)


def check(place: Place) -> Iterator[Measure]:
    """A check and a watched save against `pytest -m` of the same lab."""
    place.course("practice", "12", "solved")
    solved = place.folder / "solved"
    shutil.copytree(ROOT / "solutions" / "12" / "src", solved / "src", dirs_exist_ok=True)

    def plain() -> float:
        return place.run(place.folder / "env" / "bin" / "pytest", "-q", "-m", "lab12_2", cwd=solved)

    yield Measure(
        "course check 12.2 / pytest -m lab12_2",
        ratio(lambda: place.course("check", "12.2", cwd=solved), plain),
        "<=",
        0.7,
    )
    warm = json.loads(_inside(place, "watch", solved))
    cold = statistics.median(plain() for _ in range(PAIRS))
    yield Measure("save to verdict / pytest -m lab12_2", statistics.median(warm) / cold, "<=", 1 / 6)


def drill(place: Place) -> Iterator[Measure]:
    """A drilled fault against a fresh pytest process with the same plugins and file."""
    place.course("checkpoint", "12", "--export", "reference")
    pairs = json.loads(_inside(place, "drill", place.folder / "reference"))
    yield Measure(
        "one drill / one fresh pytest process, call time off both", statistics.median(pairs), "<=", 0.15
    )


def mutants(place: Place) -> Iterator[Measure]:
    """A drilled fault against a mutant that mutmut kills with the same tests, start-up counted for both."""
    place.run(place.python, "-m", "pip", "install", "-q", f"{ROOT}[mutants]")
    course = ("--course", str(ROOT), "drill", "12", "--json")
    drills = len(json.loads(place.output(*course))["results"])
    ours = [place.course(*course) for _ in range(2)]
    done = subprocess.run(
        [place.python, ROOT / "tools" / "measures_runs.py", "mutmut", place.folder / "mutated"],
        cwd=place.folder,
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    seconds, killed = json.loads(done.stdout)
    # Before and behind: what the machine does besides takes minutes, as mutmut's one run does.
    ours += [place.course(*course) for _ in range(2)]
    ratio = (statistics.median(ours) / drills) / (seconds / killed)
    yield Measure("one drilled fault / one mutant killed by mutmut", ratio, "<=", 1.0)


def gate(place: Place) -> Iterator[Measure]:
    """The gate's seconds by claim and chapter, of two workers; printed, and without a bound."""
    claims = json.loads(place.output("--course", str(ROOT), "verify", "-j", "2", "--json"))["claims"]
    by_chapter: dict[str, float] = {}
    for claim in claims:
        by_chapter[claim["chapter"] or "course"] = (
            by_chapter.get(claim["chapter"] or "course", 0.0) + claim["seconds"]
        )
    for claim in sorted(claims, key=lambda one: -one["seconds"]):
        print(f"{claim['seconds']:8.1f} s  {claim['chapter'] or 'course':6} {claim['claim']}")
    for chapter, seconds in by_chapter.items():
        print(f"{seconds:8.1f} s  {chapter:6} all its claims")
    yield from ()


def _inside(place: Place, what: str, tree: Path) -> str:
    """Measure inside the environment, where the engine's own modules are; JSON comes back."""
    done = subprocess.run(
        [place.python, ROOT / "tools" / "measures_runs.py", what, tree],
        cwd=place.folder,
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def _library(name: str, chapter: str) -> Callable[[Place], Iterator[Measure]]:
    """The measures of a script of ours, run with a checkpoint's library importable."""

    def measured(place: Place) -> Iterator[Measure]:
        tree = place.folder / f"library-{chapter}"
        if not tree.exists():
            place.course("checkpoint", chapter, "--export", tree)
        code = (
            "import importlib.util as u, json, sys; s = u.spec_from_file_location('m', sys.argv[1]); "
            "m = u.module_from_spec(s); s.loader.exec_module(m); print(json.dumps(list(m.measures())))"
        )
        done = subprocess.run(
            [place.python, "-c", code, ROOT / "tools" / f"measures_{name}.py"],
            env={**place.env, "PYTHONPATH": str(tree / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        for found in json.loads(done.stdout):
            yield Measure(*found)

    return measured


GROUPS: dict[str, Callable[[Place], Iterator[Measure]]] = {
    "start": start,
    "practice": practice,
    "check": check,
    "drill": drill,
    "mutants": mutants,
    "library": _library("library", "11"),
    "resources": _library("resources", "12"),
    "composition": _library("composition", "13"),
    "extensions": _library("extensions", "23"),
}
ASKED_FOR = {"gate": gate}


def main() -> int:
    """Measure the named groups, or all; give 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "groups", nargs="*", choices=[[], *GROUPS, *ASKED_FOR], help="all where none is named"
    )
    groups = parser.parse_args().groups or list(GROUPS)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        place = Place(Path(folder).resolve())
        place.install()
        for group in groups:
            for measure in {**GROUPS, **ASKED_FOR}[group](place):
                missed += not measure.holds
                _tell(group, measure)
    return 1 if missed else 0


def _tell(group: str, measure: Measure) -> None:
    sign = "ok  " if measure.holds else "MISS"
    bound = f"{measure.comparison} {measure.bound:.3g}"
    print(f"{sign} {group:12} {measure.name}: {measure.value:.3f} ({bound})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
