"""The limit takes the first names, then those are ranked."""

import sys
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    search = module.Index.search

    def cut(self: Any, query: str, *, limit: int = 10) -> Any:
        hits = search(self, query, limit=sys.maxsize)
        return [hit for hit in hits if hit in sorted(hits)[:limit]]

    module.Index.search = cut
