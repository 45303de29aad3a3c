"""Chapter 00: the workspace that every later chapter builds on."""

import sys
from importlib import resources
from pathlib import Path
from types import ModuleType

import pi_course


def test_package_is_the_one_under_test() -> None:
    """The imported package lies in this tree's own `src`, not in some installed copy."""
    own = Path(__file__).resolve().parent.parent / "src"
    found = Path(pi_course.__file__).resolve()
    assert found.parts[-3:] == ("src", "pi_course", "__init__.py")
    assert found.is_relative_to(own) or not own.exists()


def test_package_says_that_it_is_typed() -> None:
    """The package carries the `py.typed` marker, so that type checkers read its annotations."""
    assert resources.files("pi_course").joinpath("py.typed").is_file()


def test_package_reexports_nothing() -> None:
    """A name has one address, its module: the package itself offers nothing but its submodules."""
    for name, value in vars(pi_course).items():
        if not name.startswith("_"):
            assert isinstance(value, ModuleType)
            assert value.__name__ == f"pi_course.{name}"


def test_python_is_recent_enough() -> None:
    """The library is written for Python 3.11 and later."""
    assert sys.version_info >= (3, 11)
