"""The claims about what lies in a chapter's folders: what lab.toml declares, and an acceptance record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from course.catalog import Chapter
from course.manifest import AcceptanceLine
from course.trees import parent_tree, read_tree, solution_tree, starter_tree
from course.verify.bench import Workbench
from course.verify.claim import ClaimFalse, counted

_COUNT = re.compile(r"(?<![\d/])\d+/\d+(?![\d/])")


def folders_are_declared(bench: Workbench, chapter: Chapter) -> str:
    """The chapter's folders hold what lab.toml declares, all of it and nothing else."""
    patterns = list(_declared(bench, chapter))
    files = list(_files(chapter.labs_dir))
    for name in files:
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            raise ClaimFalse(f"labs/{chapter.id}/{name} is a file that lab.toml does not declare")
    focus = chapter.manifest.focus_test.removeprefix("tests/")
    faults = [f"faults/{fault.name}.patch" for fault in chapter.manifest.fault]
    for name in (focus, *faults):
        if name not in files:
            raise ClaimFalse(f"labs/{chapter.id}/{name} is missing, which lab.toml declares")
    _demand_teaching_files(bench, chapter)
    return counted(len(files), "file")


def _declared(bench: Workbench, chapter: Chapter) -> Iterator[str]:
    """Patterns of the names that may lie in labs/NN."""
    yield from ("lab.toml", f"test_{chapter.id}_*.py", "demo.py")
    yield from (f"handout.{language}.md" for language in bench.course.manifest.languages)
    if chapter.is_practice:
        yield from ("hints.toml", "quiz.toml")
    for fault in chapter.manifest.fault:
        yield from (f"faults/{fault.name}.patch", f"faults/{fault.name}.py")
    if chapter.manifest.transfer is not None and chapter.manifest.transfer.module is not None:
        yield from ("transfer/README.md", "transfer/correct_*.py", "transfer/broken_*.py")


def _files(folder: Path) -> Iterator[str]:
    """The files under a folder; hidden ones, editors' copies and bytecode are nobody's."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        left = any(part.startswith((".", "#")) or part.endswith("~") for part in parts)
        if path.is_file() and not left and "__pycache__" not in parts:
            yield "/".join(parts)


def _demand_teaching_files(bench: Workbench, chapter: Chapter) -> None:
    """Starter, solution and stages hold teaching files only, and each is there when the chapter ends."""
    teaching = set(chapter.manifest.teaching_files)
    solution, starter = solution_tree(chapter), starter_tree(chapter)
    stages = chapter.solution_dir / "stages"
    allowed = {f"{lab.id}/{file}" for lab in chapter.manifest.lab for file in teaching}
    folder = f"solutions/{chapter.id}"
    strays = [f"{folder}/{path}" for path in sorted(solution.keys() - teaching)]
    strays += [f"starters/{chapter.id}/{path}" for path in sorted(starter.keys() - teaching)]
    strays += [f"{folder}/stages/{path}" for path in sorted(read_tree(stages).keys() - allowed)]
    if strays:
        raise ClaimFalse(f"{strays[0]} is no teaching file that lab.toml declares")
    there = parent_tree(bench.course, chapter).keys() | solution.keys()
    for path in sorted(teaching - there):
        raise ClaimFalse(f"{path} is a teaching file, and {folder} does not hold it")


def acceptance_is_whole(bench: Workbench, chapter: Chapter) -> str:
    """The acceptance record has a line for each lab and for the chapter, with the manifest's counts."""
    manifest = chapter.manifest
    lines = manifest.acceptance
    name = f"labs/{chapter.id}/lab.toml"
    if not any(line.check == "chapter" for line in lines):
        raise ClaimFalse(f"{name} has no acceptance line for the whole chapter")
    for lab in manifest.lab:
        if not any(line.check == "lab" and line.lab == lab.id for line in lines):
            raise ClaimFalse(f"{name} has no acceptance line for Lab {lab.id}")
    injected = [line.fault for line in lines if line.check == "fault_injected"]
    restored = [line.fault for line in lines if line.check == "fault_restored"]
    for fault in injected:
        if fault not in restored:
            raise ClaimFalse(f"{name} has the fault {fault} injected and never restored")
    for line in lines:
        _demand_count(chapter, line)
    return counted(len(lines), "line")


def _demand_count(chapter: Chapter, line: AcceptanceLine) -> None:
    labs = {lab.id: lab.tests for lab in chapter.manifest.lab}
    faults = {fault.name: labs[fault.lab] for fault in chapter.manifest.fault}
    match line.check:
        case "first_red":
            wanted = f"0/{labs[line.lab or '']}"
        case "lab":
            wanted = f"{labs[line.lab or '']}/{labs[line.lab or '']}"
        case "fault_restored":
            wanted = f"{faults[line.fault or '']}/{faults[line.fault or '']}"
        case "chapter":
            wanted = f"{chapter.test_count}/{chapter.test_count}"
        case _:
            return
    found = _COUNT.findall(line.line)
    if found not in ([], [wanted]):
        raise ClaimFalse(f"the acceptance line {line.line!r} gives {', '.join(found)}, expected {wanted}")
