"""The bounds on sizes: modules, functions, test files and counted tests."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE, TEACHING, LAB_TESTS = 300, 600, 900
FUNCTION, COUNTED_TEST = 40, 60
WHOLE_FILES = frozenset({"resources.py", "composition.py"})


def bound_of(path: Path) -> int | None:
    """How many lines a file may have; None where no bound holds."""
    if path.name.startswith("test_"):
        return LAB_TESTS if "labs" in path.parts else None
    # What a learner wrote is as long as it is: a second implementation's modules are teaching files all.
    whole = path.name in WHOLE_FILES or "second" in path.parts
    return TEACHING if whole else MODULE


def findings(path: Path) -> Iterator[str]:
    """What in a file is over its bound."""
    text = path.read_text("utf-8")
    name = path.relative_to(ROOT)
    bound = bound_of(path)
    count = len(text.splitlines())
    if bound is not None and count > bound:
        yield f"{name}: {count} lines, at most {bound}"
    is_test = path.name.startswith("test_")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            most = COUNTED_TEST if is_test else FUNCTION
            if length > most and ("labs" in path.parts or not is_test):
                yield f"{name}:{node.lineno}: {node.name} has {length} lines, at most {most}"


def main() -> int:
    """Print every finding; give 1 where there is one."""
    found = []
    for top in ("course", "tools", "labs", "starters", "solutions", "tests"):
        for path in sorted((ROOT / top).rglob("*.py")):
            found += findings(path)
    print("\n".join(found) or "every size is within its bound")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
