"""Any word of the query finds a document."""

from types import ModuleType


def inject(module: ModuleType) -> None:
    one = module.Index.find
    module.Index.find = lambda self, query: sorted({n for w in module.tokenize(query) for n in one(self, w)})
