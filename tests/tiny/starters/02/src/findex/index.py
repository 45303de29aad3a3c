"""The words of texts, which documents they occur in, and where."""

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

    def phrase(self, text: str) -> list[str]:
        """Name the documents in which the words of the text follow one another, by name."""
        # TODO(02.2): find the phrase.
        raise NotImplementedError("Lab 02.2 phrases 尚未实现")

    def search(self, query: str, *, limit: int = 10) -> list[tuple[str, int]]:
        """Rank what `find` finds: name and score, highest score first, equal ones by name, at most `limit`.

        The score counts all occurrences of the query's words. What is quoted must be there as a phrase.
        """
        # TODO(02.1): rank queries without quotes.
        # TODO(02.3): heed the quotes.
        raise NotImplementedError("Lab 02.1 ranking 尚未实现")

    def _holding(self, word: str) -> set[str]:
        return set(self._documents.get(word, ()))
