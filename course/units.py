"""A Python file as units: top-level statements, and members of the classes that are opened.

A unit keeps its exact text, comments and blank lines before it included, so that joining all units of a file
gives the file back byte for byte.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from course.syntax import parse

# A chapter derives a stage for each of its labs from the same few files.
_KEPT = 128
# Lines as Python counts them; str.splitlines would also cut at form feeds and Unicode's separators.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One statement: `key` names it inside its file (`create_host`, `Host.wrap`, `import os`)."""

    key: str
    text: str
    node: ast.stmt | None
    mentions: frozenset[str]

    @property
    def name(self) -> str:
        """The bare name by which other units mention it."""
        return self.key.rpartition(".")[2]

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)


@lru_cache(_KEPT)
def classes_of(source: str) -> frozenset[str]:
    """The names of a file's top-level classes."""
    return frozenset(node.name for node in parse(source).body if isinstance(node, ast.ClassDef))


def split_units(source: str, opened: Iterable[str] = ()) -> list[Unit]:
    """Split a file into units; the classes named in `opened` are split into head and members."""
    return list(_split(source, frozenset(opened)))


@lru_cache(_KEPT)
def _split(source: str, opened: frozenset[str]) -> tuple[Unit, ...]:
    lines = _LINE.findall(source)
    units: list[Unit] = []
    end = 0
    for node in parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name in opened:
            members, end = _split_class(node, lines, end)
            units += members
        else:
            last = node.end_lineno or node.lineno
            units.append(_unit(_key(node), lines[end:last], node))
            end = last
    if end < len(lines):
        units.append(_unit("(end of file)", lines[end:], None))
    return tuple(_distinct(units))


def _split_class(node: ast.ClassDef, lines: list[str], end: int) -> tuple[list[Unit], int]:
    """The class's head (its line and docstring) and its members, and the line where it ends."""
    has_docstring = ast.get_docstring(node, clean=False) is not None
    members = node.body[1:] if has_docstring else node.body
    first = node.body[0]
    head_end = (first.end_lineno or first.lineno) if has_docstring else _first_line(first) - 1
    head = copy.copy(node)
    head.body = node.body[:1] if has_docstring else []
    units = [_unit(node.name, lines[end:head_end], head)]
    end = head_end
    for member in members:
        last = member.end_lineno or member.lineno
        units.append(_unit(f"{node.name}.{_key(member)}", lines[end:last], member))
        end = last
    return units, end


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _unit(key: str, lines: list[str], node: ast.stmt | None) -> Unit:
    return Unit(
        key=key, text="".join(lines), node=node, mentions=_mentions(node) if node is not None else frozenset()
    )


def _mentions(node: ast.AST) -> frozenset[str]:
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Attribute):
            names.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            names.add(part.value)
    return frozenset(names)


def _key(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Import | ast.ImportFrom):
        return ast.unparse(node).partition(" import (")[0]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.Assign | ast.AugAssign) and (root := _root(node)) is not None:
        return root
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return "(docstring)"
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    return ast.unparse(node)[:60]


def _distinct(units: list[Unit]) -> list[Unit]:
    """Number the keys that come more than once (overloads, a property and its setter)."""
    seen: dict[str, int] = {}
    result = []
    for unit in units:
        count = seen[unit.key] = seen.get(unit.key, 0) + 1
        key = unit.key if count == 1 else f"{unit.key}#{count}"
        result.append(Unit(key=key, text=unit.text, node=unit.node, mentions=unit.mentions))
    return result


def _root(node: ast.Assign | ast.AugAssign) -> str | None:
    """The name that an assignment such as `_CACHE["x"] = …` belongs to."""
    target: ast.expr = node.targets[0] if isinstance(node, ast.Assign) else node.target
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
