"""A word that leads to no document is an error."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    find = module.Index.find

    def find_known(self: Any, query: str) -> Any:
        for word in module.tokenize(query):
            if not find(self, word):
                raise KeyError(word)
        return find(self, query)

    module.Index.find = find_known
