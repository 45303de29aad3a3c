"""Knows what finding and loading extensions may cost: its growth with their number.

Decision: processor time, medians of paired runs back to back, each pair in two folders that no run has used,
because a loader may keep what it has loaded.
"""

import asyncio
import gc
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pi_course.extensions.loader import load_extensions
from pi_course.extensions.packages import ExtensionSettings, resolve_extensions

PAIRS = 7
EXTENSIONS = 1_000
LINEAR = 2.4
TEXT = """def setup(api):
    api.register_command("command-{number}", lambda arguments, context: None)
    api.on("tool_call", lambda event: None)
"""


def measures() -> Iterator[tuple[str, float, str, float]]:
    """Measure one thing after another: its name, the figure, how it has to compare, and the bound."""
    for name, cost in (("resolve_extensions", resolving), ("load_extensions", loading)):
        with tempfile.TemporaryDirectory() as folder:
            figure = paired(cost, Path(folder))
        yield f"{name}: {2 * EXTENSIONS:,} to {EXTENSIONS:,} extensions", figure, "<=", LINEAR


def paired(cost: Callable[[Path], float], folder: Path) -> float:
    """Compare twice as many with as many, after one pair that doesn't count."""
    numbers = itertools.count()
    ratios = []
    for _ in range(PAIRS + 1):
        large = write_extensions(folder / str(next(numbers)), 2 * EXTENSIONS)
        small = write_extensions(folder / str(next(numbers)), EXTENSIONS)
        ratios.append(cost(large) / cost(small))
    return statistics.median(ratios[1:])


def write_extensions(root: Path, count: int) -> Path:
    """Write extensions into a user's folder, with names that sort otherwise."""
    folder = root / "extensions"
    folder.mkdir(parents=True)
    for number in range(count):
        name = f"extension-{number * 7919 % count:05}.py"
        (folder / name).write_text(TEXT.format(number=number), encoding="utf-8")
    return root


def resolving(agent_dir: Path) -> float:
    """Time one resolution."""
    gc.collect()
    start = time.process_time()
    found = resolve_extensions(
        cwd=agent_dir / "project",
        agent_dir=agent_dir,
        project=ExtensionSettings([], []),
        user=ExtensionSettings([], []),
        entry_points=lambda **group: [],
    )
    took = time.process_time() - start
    assert len(found.paths) in (EXTENSIONS, 2 * EXTENSIONS)
    return took


def loading(agent_dir: Path) -> float:
    """Time the load of every file in a folder."""
    paths = sorted(str(path) for path in (agent_dir / "extensions").iterdir())
    gc.collect()
    start = time.process_time()
    result = asyncio.run(load_extensions(paths, cwd=str(agent_dir)))
    took = time.process_time() - start
    assert len(result.extensions) == len(paths)
    return took


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
