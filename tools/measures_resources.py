"""Knows what discovering skills may cost: its growth with their number, and its memory with their bodies.

Decision: medians of paired runs, each pair measured back to back, because whatever else slows the machine
down slows both halves of a pair alike. Long bodies are sparse files: they cost no disk, but whoever read them
would hold all of their bytes.
"""

import asyncio
import gc
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from pi_course.resources import discover_resources

PAIRS = 7
SKILLS = 1_000
LINEAR = 2.4
FEW = 50  # skills, where it is their bodies that grow
MIB = 1024 * 1024
FLAT = 1.2


def measures() -> Iterator[tuple[str, float, str, float]]:
    """Measure one thing after another: its name, the figure, how it has to compare, and the bound."""
    with tempfile.TemporaryDirectory() as folder:
        small = write_skills(Path(folder, "small"), SKILLS)
        large = write_skills(Path(folder, "large"), 2 * SKILLS)
        figure = paired(seconds, large, small)
        yield f"discover_resources: {2 * SKILLS:,} to {SKILLS:,} skills", figure, "<=", LINEAR
    with tempfile.TemporaryDirectory() as folder:
        short = write_skills(Path(folder, "short"), FEW, MIB)
        long = write_skills(Path(folder, "long"), FEW, 64 * MIB)
        yield "its memory: bodies of 64 MiB to 1 MiB", paired(peak_bytes, long, short), "<=", FLAT


def paired(cost: Callable[[Path], float], dividend: Path, divisor: Path) -> float:
    """Compare the cost of two roots, after one run of each that doesn't count."""
    cost(dividend), cost(divisor)
    return statistics.median(cost(dividend) / cost(divisor) for _ in range(PAIRS))


def write_skills(root: Path, count: int, body_bytes: int = 0) -> Path:
    """Write skills with an ordinary head, in folders that sort otherwise, short or sparse."""
    for number in range(count):
        path = root / "skills" / f"skill-{number * 7919 % count:05}" / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(
            f"---\nname: skill-{number:05}\ndescription: What number {number} is for, in a line.\n"
            "license: MIT\nkeywords: [review, notes]\n---\n\n# Steps\n\n1. Read.\n2. Think.\n",
            encoding="utf-8",
        )
        if body_bytes:
            with path.open("r+b") as file:
                file.truncate(body_bytes)
    return root


def seconds(root: Path) -> float:
    """Time one discovery."""
    gc.collect()
    start = time.perf_counter()
    asyncio.run(discover_resources([root]))
    return time.perf_counter() - start


def peak_bytes(root: Path) -> float:
    """Find the most memory that one discovery holds at a time."""
    gc.collect()
    tracemalloc.start()
    try:
        asyncio.run(discover_resources([root]))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> int:
    """Print a table; status 1 where a bound is missed."""
    missed = 0
    for name, value, comparison, bound in measures():
        holds = value <= bound if comparison == "<=" else value >= bound
        missed += not holds
        print(
            f"{name:50} {value:6.2f} {comparison} {bound:.2f}  {'holds' if holds else 'MISSED'}", flush=True
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
