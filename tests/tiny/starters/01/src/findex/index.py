"""The words of texts, and which documents they occur in."""

from __future__ import annotations


def tokenize(text: str) -> list[str]:
    """Split a text into its words, in order, case folded; a word is a run of letters, digits and `_`."""
    # TODO(01.1): split the text.
    raise NotImplementedError("Lab 01.1 tokenize 尚未实现")


class Index:
    """Documents, found by the words they hold."""

    def add(self, name: str, text: str) -> None:
        """Take in a document; one of the same name is replaced."""
        # TODO(01.2): remember the document.
        raise NotImplementedError("Lab 01.2 add and find 尚未实现")

    def find(self, query: str) -> list[str]:
        """Name the documents that hold every word of the query, by name; a query without words finds none."""
        # TODO(01.2): find the documents.
        raise NotImplementedError("Lab 01.2 add and find 尚未实现")
