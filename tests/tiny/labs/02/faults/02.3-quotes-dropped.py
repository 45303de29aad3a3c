"""Quotes in a query mean nothing."""

from types import ModuleType


def inject(module: ModuleType) -> None:
    search = module.Index.search
    module.Index.search = lambda self, query, **options: search(self, query.replace('"', " "), **options)
