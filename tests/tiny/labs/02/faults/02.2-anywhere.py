"""A phrase is found wherever all its words are."""

from types import ModuleType


def inject(module: ModuleType) -> None:
    module.Index.phrase = module.Index.find
