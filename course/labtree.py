"""The pytest plugin of a course's own checkout: the option `--tree`, which labs/conftest.py acts on.

Decision: a plugin, because pytest takes the value of an option that only a conftest below its start knows for
a path.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --tree."""
    parser.addoption(
        "--tree",
        default="target",
        metavar="target|starter|LAB",
        help="what the lab tests judge: the reference, the starter, or the state with the labs to LAB done",
    )
