"""The one place that prints: Rich for people, plain text where that is all there is, JSON for programs.

Decision: what only some commands print with is imported there, because every command starts through here.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from rich.console import Console, RenderableType
from rich.text import Text

JSON_FORMAT = 1
_ERRORS = "backslashreplace"
_SPACES = "\n\t\u00a0\u3000"
_STYLED_PAGERS = ("less", "more", "most", "bat")
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
        return _is_terminal(sys.stdout)

    @property
    def width(self) -> int:
        return self._out.width

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line as it is; long lines are left to the terminal."""
        self._out.print(Text(_encodable(text, self._out), style=style), soft_wrap=True)

    def paragraph(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print one line; on a terminal too narrow for it wrapped between words, going on under `indent`."""
        text = _encodable(text, self._out)
        if not self.is_terminal or len(text) <= self.width or self.width <= 2 * indent:
            self.line(text, style)
            return
        import textwrap

        wrapper = textwrap.TextWrapper(
            self.width,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in wrapper.wrap(text):
            self.line(line, style)

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)

    def raw(self, text: str) -> None:
        """Write a text as it is, at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

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

    def prose(self, text: str, style: str = "") -> None:
        """Print a paragraph, wrapped between words where a person reads it."""
        self._out.print(Text(_encodable(text, self._out), style=style), soft_wrap=not self.is_terminal)

    def markdown(self, text: str, *, pager: bool = False) -> None:
        """Print a chapter text, rendered where a person reads it."""
        if not self.is_terminal:
            self.lines(text.splitlines())
            return
        from rich.markdown import Markdown

        self._show(Markdown(_encodable(text, self._out)), pager=pager)

    def code(self, text: str, language: str, *, pager: bool = False) -> None:
        """Print source text or a diff, highlighted where a person reads it, else as it is."""
        if not self.is_terminal:
            self.raw(text if text.endswith("\n") else f"{text}\n")
            return
        from rich.syntax import Syntax

        shown = Syntax(
            _encodable(text, self._out),
            language,
            theme="ansi_dark",
            background_color="default",
            word_wrap=True,
        )
        self._show(shown, pager=pager)

    def _show(self, content: RenderableType, *, pager: bool) -> None:
        """Print, through the user's pager where that is wanted and the screen is too small."""
        program = _pager_program() if pager else None
        if program is None or len(self._out.render_lines(content, pad=False)) < self._out.height:
            self._out.print(content)
            return
        os.environ.setdefault("LESS", "-R")
        with self._out.pager(styles=program in _STYLED_PAGERS):
            self._out.print(content)

    @property
    def can_ask(self) -> bool:
        """Whether a person sits at both ends, so that a question makes sense."""
        return sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()

    def ask(self, question: str) -> str | None:
        """A person's answer of one line; None where the input ends."""
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        with suppress(ImportError):
            import readline  # noqa: F401 - makes the line editable
        try:
            return input(_encodable(question, self._out)).strip()
        except EOFError:
            self.line()
            return None

    def agrees(self, question: str) -> bool:
        """Whether a person says yes; no is the answer where there is none."""
        answer = self.ask(f"{question} [y/N] ")
        return answer is not None and answer.lower() in ("y", "yes")

    def document(self, kind: str, data: dict[str, Any]) -> None:
        """Print one versioned JSON document for programs."""
        import json

        document = {"format": JSON_FORMAT, "kind": kind, **data}
        text = json.dumps(document, indent=2, ensure_ascii=False)
        if not _can_encode(text, self._out):
            text = json.dumps(document, indent=2)
        sys.stdout.write(text + "\n")

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show on a terminal that something goes on that may take over a second."""
        if not self._err.is_terminal:
            yield
            return
        with self._err.status(_encodable(text, self._err)):
            yield


def _is_terminal(stream: IO[str]) -> bool:
    return not stream.closed and stream.isatty()


def _console(stream: IO[str]) -> Console:
    # Once only: it writes out what is waiting, which is what may just have failed.
    if isinstance(stream, io.TextIOWrapper) and stream.errors != _ERRORS:
        stream.reconfigure(errors=_ERRORS)
    styled = _is_terminal(stream) and not os.environ.get("NO_COLOR")
    width = _width(stream)
    return Console(
        file=stream, highlight=False, emoji=False, markup=False, width=width, legacy_windows=False,
        force_terminal=styled,
    )  # fmt: skip


def _width(stream: IO[str]) -> int | None:
    """How many columns to use; None lets Rich find out. A COLUMNS of 0 is as good as none."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    return None if _is_terminal(stream) and not columns.isdigit() else 100


def _pager_program() -> str | None:
    """The name of the program that will page, None where there is none or it would page nothing."""
    chosen = os.environ.get("MANPAGER") or os.environ.get("PAGER") or "less"
    try:
        words = shlex.split(chosen)
    except ValueError:
        return None
    found = shutil.which(words[0]) if words else None
    if found is None or Path(found).name == "cat" or os.environ.get("TERM") == "dumb":
        return None
    return Path(found).name


def _can_encode(text: str, console: Console) -> bool:
    try:
        text.encode(getattr(console.file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(text: str, console: Console) -> str:
    """The text with signs that the output can't encode replaced by plain ones; control signs made visible."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in _SPACES else repr(c)[1:-1] for c in text)
    if _can_encode(text, console):
        return text
    return "".join(c if _can_encode(c, console) else _PLAIN.get(c, c) for c in text)
