"""The words of texts, which documents they occur in, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_PHRASE = re.compile(r'"([^"]*)"')


def tokenize(text: str) -> list[str]:
    """Split a text into its words, in order, case folded; a word is a run of letters, digits and `_`."""
    return _WORD.findall(text.casefold())


class Index:
    """Documents, found by the words they hold."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[str, list[int]]] = {}

    def add(self, name: str, text: str) -> None:
        """Take in a document; one of the same name is replaced."""
        for documents in self._documents.values():
            documents.pop(name, None)
        for position, word in enumerate(tokenize(text)):
            self._documents.setdefault(word, {}).setdefault(name, []).append(position)

    def find(self, query: str) -> list[str]:
        """Name the documents that hold every word of the query, by name; a query without words finds none."""
        words = tokenize(query)
        return sorted(set.intersection(*(self._holding(word) for word in words))) if words else []

    def phrase(self, text: str) -> list[str]:
        """Name the documents in which the words of the text follow one another, by name."""
        words = tokenize(text)
        return [name for name in self.find(text) if self._follow(name, words)]

    def search(self, query: str, *, limit: int = 10) -> list[tuple[str, int]]:
        """Rank what `find` finds: name and score, highest score first, equal ones by name, at most `limit`.

        The score counts all occurrences of the query's words. What is quoted must be there as a phrase.
        """
        phrases = [phrase for phrase in _PHRASE.findall(query) if tokenize(phrase)]
        names = set(self.find(query)).intersection(*(self.phrase(phrase) for phrase in phrases))
        return self._ranked(names, set(tokenize(query)))[:limit]

    def _holding(self, word: str) -> set[str]:
        return set(self._documents.get(word, ()))

    def _ranked(self, names: set[str], words: set[str]) -> list[tuple[str, int]]:
        hits = [(name, sum(len(self._documents[word][name]) for word in words)) for name in names]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    def _follow(self, name: str, words: Sequence[str]) -> bool:
        starts = [{at - k for at in self._documents[word][name]} for k, word in enumerate(words)]
        return bool(set.intersection(*starts))
