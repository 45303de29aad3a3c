"""The one place that prints: Rich for people, plain text where that is all there is, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console
from rich.text import Text

JSON_FORMAT = 1
_PLAIN = {
    "·": "-", "—": "-", "–": "-", "→": "->", "✓": "ok", "✗": "x", "★": "*", "…": "...", "↳": ">", "×": "x",
    "│": "|", "─": "-", "└": "`", "├": "|", "“": '"', "”": '"', "’": "'", "≤": "<=", "≥": ">=",
}  # fmt: skip


class Output:
    """Standard output and error of one command run."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verbose = verbose
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads standard output."""
        return self._out.is_terminal

    @property
    def width(self) -> int:
        return self._out.width

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line as it is; long lines are left to the terminal."""
        self._out.print(Text(_encodable(text, self._out), style=style), soft_wrap=True)

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)

    def raw(self, text: str) -> None:
        """Write a text for programs, as it is."""
        sys.stdout.write(text)

    def note(self, text: str, style: str = "") -> None:
        """Print one line on standard error."""
        self._err.print(Text(_encodable(text, self._err), style=style), soft_wrap=True)

    def table(
        self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()
    ) -> None:
        """Print a table without borders; the columns in `right` are right-aligned."""
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        for index, heading in enumerate(headings):
            table.add_column(heading, justify="right" if index in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_encodable(cell, self._out)) for cell in row))
        self._out.print(table)

    def markdown(self, text: str) -> None:
        """Print a chapter text, rendered where a person reads it."""
        if not self.is_terminal:
            self.lines(text.splitlines())
            return
        from rich.markdown import Markdown

        self._out.print(Markdown(_encodable(text, self._out)))

    def document(self, kind: str, data: dict[str, Any]) -> None:
        """Print one versioned JSON document for programs."""
        document = {"format": JSON_FORMAT, "kind": kind, **data}
        ascii_only = not _can_encode("尚·", self._out)
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=ascii_only) + "\n")

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show on a terminal that something goes on that may take over a second."""
        if not self._err.is_terminal:
            yield
            return
        with self._err.status(_encodable(text, self._err)):
            yield


def _console(stream: IO[str]) -> Console:
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    terminal = stream.isatty()
    width = None if terminal or os.environ.get("COLUMNS", "").isdigit() else 100
    return Console(file=stream, highlight=False, emoji=False, markup=False, width=width, legacy_windows=False)


def _can_encode(text: str, console: Console) -> bool:
    try:
        text.encode(getattr(console.file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(text: str, console: Console) -> str:
    """The text with signs that the output can't encode replaced by plain ones; control signs made visible."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
    if _can_encode(text, console):
        return text
    return "".join(c if _can_encode(c, console) else _PLAIN.get(c, c) for c in text)
