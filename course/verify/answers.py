"""What an answer is: a statement or body of the reference, new against the parent and not trivial."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SHORT = 24
_TRIVIAL = 12


def answer_lines(solution: str, parent: str) -> frozenset[str]:
    """The normalised statements of the reference's functions that the parent's file does not have.

    Signatures, types, imports, docstrings and trivial statements are none.
    """
    return frozenset(_statements(solution)) - frozenset(_statements(parent))


def answer_bodies(solution: str, parent: str) -> dict[str, str]:
    """Dump of each new function body of the reference, and the function's name."""
    known = {body for _, body in _bodies(parent)}
    return {body: name for name, body in _bodies(solution) if body not in known}


def leaked_lines(text: str, answers: frozenset[str]) -> list[str]:
    """The answer lines that a Python file's functions hold, or that a line or comment of it spells out."""
    found = set(_statements(text)) & answers
    plain = {line.strip().lstrip("#").strip() for line in text.splitlines()}
    return sorted(found | {line for line in plain & answers if len(line) >= _SHORT})


def leaked_bodies(text: str, bodies: dict[str, str]) -> list[str]:
    """The names of the reference's functions whose bodies a Python file holds, under whatever name."""
    return sorted({bodies[body] for _, body in _bodies(text) if body in bodies})


def spelled_lines(text: str, answers: frozenset[str]) -> list[str]:
    """The longer answer lines that a text of any kind spells out."""
    lines = {line.strip().lstrip("#>-* `").rstrip("` ").strip() for line in text.splitlines()}
    return sorted(line for line in lines & answers if len(line) >= _SHORT)


def _functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _bodies(source: str) -> Iterator[tuple[str, str]]:
    for function in _functions(source):
        body = [node for node in function.body if not _is_trivial(node)]
        if body:
            yield function.name, "\n".join(ast.dump(node) for node in body)


def _statements(source: str) -> Iterator[str]:
    for function in _functions(source):
        for node in _inner(function.body):
            if not _is_trivial(node):
                yield _head(node)


def _inner(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        for block in ("body", "orelse", "finalbody"):
            yield from _inner(getattr(node, block, []))
        for handler in getattr(node, "handlers", []):
            yield from _inner(handler.body)
        for case in getattr(node, "cases", []):
            yield from _inner(case.body)


def _head(node: ast.stmt) -> str:
    text = ast.unparse(node)
    return text.splitlines()[0] if isinstance(node, _COMPOUND) else text


_COMPOUND = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
)


def _is_trivial(node: ast.stmt) -> bool:
    """Statements that give nothing away: scaffolds, docstrings, bare flow, keeping an argument, few letters."""
    if not isinstance(node, _COMPOUND) and len(ast.unparse(node)) < _TRIVIAL:
        return True
    match node:
        case ast.Pass() | ast.Break() | ast.Continue() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Global() | ast.Nonlocal() | ast.Try() | ast.TryStar():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"))))):
            return True
        case ast.Return(value=None | ast.Constant() | ast.Name()):
            return True
        case (
            ast.Raise(exc=None | ast.Name())
            | ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError")))
        ):
            return True
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(id="self"))], value=ast.Name() | ast.Constant()
        ):
            return True
        case ast.AnnAssign(
            target=ast.Attribute(value=ast.Name(id="self")), value=None | ast.Name() | ast.Constant()
        ):
            return True
        case ast.AnnAssign(value=None):
            return True
    return False
