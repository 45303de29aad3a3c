"""A word of the query counts once, however often the document holds it."""

import sys
from types import ModuleType
from typing import Any

MODULE = "findex.index"


def inject(module: ModuleType) -> None:
    search = module.Index.search

    def flat(self: Any, query: str, *, limit: int = 10) -> Any:
        score = len(set(module.tokenize(query)))
        return sorted((name, score) for name, _ in search(self, query, limit=sys.maxsize))[:limit]

    module.Index.search = flat
