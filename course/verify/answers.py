"""What an answer is: a statement or body of the reference, new against the parent and not trivial."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course.syntax import parse

_SHORT = 24
_LONG = 40
_TRIVIAL = 12
_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Statements as `lines` (normalised, and the longer ones as the reference writes them), and bodies.

    `bodies` holds the dump of each function body, and the function's name.
    """

    lines: frozenset[str]
    bodies: dict[str, str]

    def in_code(self, text: str) -> str:
        """What a Python file gives away, as a clause; empty for nothing. Raises SyntaxError."""
        found = sorted(self.lines & frozenset(_statements(text))) or self._spelled(text)
        if found:
            return f"holds an answer line: {found[0]}"
        return self._solved(text)

    def in_test(self, text: str) -> str:
        """What a test file gives away: it may call what learners write, but not have it in a comment."""
        found = self._spelled("\n".join(_comments(text)))
        return f"holds an answer line: {found[0]}" if found else self._solved(text)

    def in_prose(self, text: str) -> str:
        """What any other text gives away: a line, or a piece of one that is set as code."""
        if found := self._spelled(text):
            return f"spells out an answer line: {found[0]}"
        spans = {span.strip() for span in _SPAN.findall(text)}
        for span in sorted(spans):
            whole = next((line for line in sorted(self.lines) if span in line), None)
            if len(span) >= _SHORT and whole is not None:
                return f"spells out a part of an answer line: {span}"
        return ""

    def in_handout(self, text: str) -> str:
        """What a chapter's own text gives away: it may show calls of the contract, but no whole line."""
        found = self._spelled(text)
        return f"spells out an answer line: {found[0]}" if found else ""

    def in_foreign_code(self, text: str) -> str:
        """What code of another chapter gives away: a line alone is everybody's. Raises SyntaxError."""
        return self.in_foreign_edit(text) or self._solved(text)

    def in_foreign_edit(self, text: str) -> str:
        """What an edit of another chapter's reference gives away."""
        found = [line for line in self._spelled(text) if len(line) >= _LONG]
        return f"holds answer lines: {found[0]}" if len(found) > 1 else ""

    def _spelled(self, text: str) -> list[str]:
        return sorted(line for line in self.lines if len(line) >= _SHORT and line in text)

    def _solved(self, text: str) -> str:
        names = sorted({self.bodies[body] for _, body in _bodies(text) if body in self.bodies})
        return f"holds the solved body of {names[0]}" if names else ""


def find_answers(solution: Iterable[str], parent: Iterable[str]) -> Answers:
    """The answers of Python files, against all files of the package that the chapter starts from."""
    known: set[str] = set()
    known_bodies: set[str] = set()
    for text in parent:
        known |= {line.strip() for line in text.splitlines()} | set(_statements(text))
        known_bodies |= {body for _, body in _bodies(text)}
    lines: set[str] = set()
    bodies: dict[str, str] = {}
    for text in solution:
        lines |= set(_statements(text)) | set(_written(text))
        bodies |= {body: name for name, body in _bodies(text)}
    new = {body: name for body, name in bodies.items() if body not in known_bodies}
    return Answers(lines=frozenset(lines - known), bodies=new)


def _functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _bodies(source: str) -> Iterator[tuple[str, str]]:
    for function in _functions(source):
        body = [node for node in function.body if not _is_trivial(node)]
        if body:
            yield function.name, "\n".join(ast.dump(node) for node in body)


def _statements(source: str) -> Iterator[str]:
    """Each statement that counts, on one line and in one spelling; of a compound one its head."""
    for node in _counting(source):
        text = ast.unparse(node)
        yield text.splitlines()[0] if isinstance(node, _COMPOUND) else text


def _written(source: str) -> Iterator[str]:
    """The longer lines of these statements as they are written."""
    lines = source.splitlines()
    for node in _counting(source):
        last = node.end_lineno or node.lineno
        if isinstance(node, _COMPOUND):
            last = max(node.lineno, _first_inside(node) - 1)
        for line in lines[node.lineno - 1 : last]:
            if len(line.strip()) >= _SHORT:
                yield line.strip()


def _first_inside(node: ast.stmt) -> int:
    inner = [*getattr(node, "body", []), *(case.pattern for case in getattr(node, "cases", []))]
    return min((one.lineno for one in inner), default=node.lineno + 1)


def _counting(source: str) -> Iterator[ast.stmt]:
    for function in _functions(source):
        for node in _inner(function.body):
            if not _is_trivial(node):
                yield node


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


def _comments(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


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
    """What gives nothing away: scaffolds, docstrings, bare flow, keeping an argument, few letters."""
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
