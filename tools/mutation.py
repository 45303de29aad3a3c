"""A yardstick from outside: mutmut on a chapter's teaching files, judged by the chapter's own tests.

`python tools/mutation.py 12` runs counted and extra tests; `--counted` the counted ones alone. Survivors that
tools/mutants.toml lists, each with its reason, are not counted. The status is 1 below the bound. It needs the
extra `mutants`: `pip install -e '.[mutants]'`.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REVIEWED = ROOT / "tools" / "mutants.toml"
BOUND = 95.0
KILLED = frozenset({1, 3, 24, 36, 152, 255, -24, -9, -11})
"""Exit codes that mutmut keeps for a mutant: failed tests, time-outs and crashes; 0 is a survivor."""


@dataclass(frozen=True)
class Mutant:
    """One mutant: mutmut's name for it, and whether a test killed it."""

    name: str
    killed: bool
    change: str = ""

    def is_of(self, lines: frozenset[str]) -> bool:
        """Whether a survivor changes nothing but these lines."""
        taken = {line[2:] for line in self.change.splitlines() if line.startswith("- ")}
        return bool(taken) and taken <= lines


def teaching_files(chapter: str) -> list[str]:
    """The files that a chapter's manifest says learners edit."""
    manifest = tomllib.loads((ROOT / "labs" / chapter / "lab.toml").read_text("utf-8"))
    return list(manifest["teaching_files"])


def prepare(chapter: str, folder: Path, *, counted: bool) -> Path:
    """Export the chapter's target into `folder` and tell mutmut what to mutate and which tests to run."""
    tree = folder / "tree"
    command = [sys.executable, "-m", "course", "checkpoint", chapter, "--export", tree]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for test in (tree / "tests").glob("test_*.py"):
        if not test.name.startswith(f"test_{chapter}_"):
            test.unlink()
    expression = f"lab{chapter}" if counted else f"lab{chapter} or extra{chapter}"
    settings = {
        "source_paths": ["src"],
        "only_mutate": teaching_files(chapter),
        "also_copy": ["src", "pyproject.toml"],
        "pytest_add_cli_args_test_selection": ["tests", "-m", expression],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    project = tree / "pyproject.toml"
    project.write_text(project.read_text("utf-8") + "\n[tool.mutmut]\n" + "\n".join(lines) + "\n", "utf-8")
    return tree


def run(tree: Path) -> None:
    """Run mutmut in a tree."""
    subprocess.run(
        [Path(sys.executable).parent / "mutmut", "run"], cwd=tree, check=False, stdout=subprocess.DEVNULL
    )


def exit_codes(tree: Path) -> dict[str, int]:
    """What came of each mutant, by mutmut's name for it."""
    metas = sorted((tree / "mutants").rglob("*.meta"))
    if not metas:
        raise SystemExit("mutmut left no result: run it by hand in an exported tree to see why")
    codes: dict[str, int] = {}
    for meta in metas:
        codes |= json.loads(meta.read_text("utf-8"))["exit_code_by_key"]
    return codes


def mutants(tree: Path) -> Iterator[Mutant]:
    """Run mutmut in a tree and give each mutant."""
    run(tree)
    for name, code in exit_codes(tree).items():
        survived = code not in KILLED
        yield Mutant(name, not survived, change(tree, name) if survived else "")


def change(tree: Path, name: str) -> str:
    """What a mutant changes, as the lines taken out and put in: its identity, whatever its number."""
    shown = subprocess.run(
        [Path(sys.executable).parent / "mutmut", "show", name],
        cwd=tree,
        check=False,
        capture_output=True,
        text=True,
    )
    lines = [
        line for line in shown.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)


def untouched(chapter: str) -> frozenset[str]:
    """The functions of teaching files, as mutmut names them, that the chapter has as its parent had them.

    Of a file that a chapter only adds a seam to, the seam alone is the chapter's.
    """
    same: set[str] = set()
    for file in teaching_files(chapter):
        before = _before(chapter, file)
        if before is not None:
            now, old = _functions(ROOT / "solutions" / chapter / file), _functions(before)
            same |= {name for name, text in now.items() if old.get(name) == text}
    return frozenset(same)


def parents_lines(chapter: str) -> frozenset[str]:
    """The lines of teaching files that the parent has too: what survives there is an earlier chapter's."""
    files = [_before(chapter, file) for file in teaching_files(chapter)]
    texts = [file.read_text("utf-8") for file in files if file is not None]
    return frozenset(line.strip() for text in texts for line in text.splitlines())


def _before(chapter: str, file: str) -> Path | None:
    """A teaching file as an earlier chapter left it."""
    paths = [ROOT / "solutions" / one / file for one in sorted(_chapters()) if one < chapter]
    found = [path for path in paths if path.is_file()]
    return found[-1] if found else None


def _chapters() -> list[str]:
    course = tomllib.loads((ROOT / "checkpoints" / "course.toml").read_text("utf-8"))
    return list(course["chapters"])


def _functions(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        owner = f"xǁ{node.name}ǁ" if isinstance(node, ast.ClassDef) else "x_"
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{owner}{inner.name}"] = ast.dump(inner)
    return found


def reviewed(chapter: str) -> dict[tuple[str, str], str]:
    """The reviewed survivors of a chapter: function and change, and why each is not counted."""
    if not REVIEWED.is_file():
        return {}
    found = tomllib.loads(REVIEWED.read_text("utf-8")).get("mutant", [])
    return {
        (one["where"], one["change"].strip()): one["reason"] for one in found if one["chapter"] == chapter
    }


def place(mutant: Mutant) -> str:
    """The function that a mutant lies in, without its number."""
    return mutant.name.rpartition("__mutmut_")[0].rpartition(".")[2]


def main() -> int:
    """Run and report; give 1 below the bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("chapter")
    parser.add_argument("--counted", action="store_true", help="the counted tests alone; nothing is demanded")
    parser.add_argument(
        "--toml", action="store_true", help="print what survives as entries for tools/mutants.toml"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="course-mutation-") as folder:
        tree = prepare(options.chapter, Path(folder).resolve(), counted=options.counted)
        same = untouched(options.chapter)
        old = parents_lines(options.chapter)
        every = [one for one in mutants(tree) if place(one) not in same and not one.is_of(old)]
    excused = reviewed(options.chapter)
    survivors = [one for one in every if not one.killed and (place(one), one.change) not in excused]
    counted = sum(one.killed for one in every) + len(survivors)
    for one in survivors:
        print(_entry(options.chapter, one) if options.toml else f"{one.name}\n{one.change}\n")
    share = 100 * (counted - len(survivors)) / counted if counted else 0.0
    print(
        f"# chapter {options.chapter}: {counted - len(survivors)} of {counted} counted mutants killed "
        f"({share:.1f} %), {len(every) - counted} of {len(every)} not counted"
    )
    return 0 if options.counted or share >= BOUND else 1


def _entry(chapter: str, mutant: Mutant) -> str:
    return (
        f'[[mutant]]\nchapter = "{chapter}"\nwhere = "{place(mutant)}"\n'
        f"change = '''\n{mutant.change}\n'''\nreason = \"\"\n"
    )


if __name__ == "__main__":
    sys.exit(main())
