"""The claim that a handout's commands run: each line, in order, in a practice whose labs are done."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from course.catalog import Chapter
from course.history import cache_folder
from course.process import Finished, child_environment, run_process
from course.verify.bench import Workbench
from course.verify.claim import ClaimBroken, ClaimFalse, counted
from course.verify.texts import code_blocks, handout_text

_DEADLINE = 600.0


def commands_run(bench: Workbench, chapter: Chapter) -> str:
    """Each line of the handout's `bash` blocks ends with status 0; `sh` blocks lead to the practice.

    One language is enough: that the blocks are the same in all of them is another claim.
    """
    blocks = code_blocks(handout_text(chapter, bench.language), "bash")
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    commands = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if commands:
        environment = _environment(commands)
        place = _place(bench, chapter)
        for line in commands:
            _demand_success(
                line, run_process(["bash", "-c", line], cwd=place, env=environment, deadline=_DEADLINE)
            )
    return counted(len(commands), "command")


def _environment(commands: list[str]) -> dict[str, str]:
    """A learner's: this environment's programs first on PATH, the course's cache where it is now."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    for program in {"bash", *(line.split()[0] for line in commands)} & {"bash", "course", "pytest"}:
        if shutil.which(program, path=path) is None:
            raise ClaimBroken(f"there is no {program} to run the handout's commands with")
    return child_environment({"PATH": path, "COURSE_CACHE_DIR": str(cache_folder())})


def _place(bench: Workbench, chapter: Chapter) -> Path:
    """A solved practice that holds the chapter: its own, or the next; else the chapter's target."""
    later = bench.course.chapters[bench.course.chapters.index(chapter) :]
    practised = next((one for one in later if one.is_practice), None)
    if practised is None:
        return bench.target(chapter)
    return bench.solved(practised, f"commands-{chapter.id}")


def _demand_success(line: str, finished: Finished) -> None:
    if finished.timed_out:
        raise ClaimFalse(f"`{line}` did not end within {_DEADLINE:g} s")
    if finished.status != 0:
        said = (finished.stdout + finished.stderr).strip().splitlines() or ["nothing was said"]
        raise ClaimFalse(f"`{line}` ended with status {finished.status}: {said[-1].strip()}")
