"""The one door to Python's own parser of syntax trees.

Decision: one at a time, because CPython 3.11 counts the depth of the tree that it builds for all threads
together, and fails now and then where two of them parse at once.
"""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """The syntax tree of a Python source. Raises SyntaxError."""
    with _ONE_AT_A_TIME:
        return ast.parse(source)
