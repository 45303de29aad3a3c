"""The words of texts, and which documents they occur in."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")


def tokenize(text: str) -> list[str]:
    """Split a text into its words, in order, case folded; a word is a run of letters, digits and `_`."""
    return _WORD.findall(text.casefold())


class Index:
    """Documents, found by the words they hold."""

    def __init__(self) -> None:
        self._documents: dict[str, set[str]] = {}

    def add(self, name: str, text: str) -> None:
        """Take in a document; one of the same name is replaced."""
        for documents in self._documents.values():
            documents.discard(name)
        for word in tokenize(text):
            self._documents.setdefault(word, set()).add(name)

    def find(self, query: str) -> list[str]:
        """Name the documents that hold every word of the query, by name; a query without words finds none."""
        words = tokenize(query)
        return sorted(set.intersection(*(self._holding(word) for word in words))) if words else []

    def _holding(self, word: str) -> set[str]:
        return set(self._documents.get(word, ()))
