"""A reload runs the factories that were imported before."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.session"


def inject(module: ModuleType) -> None:
    """Give resource loaders a cache that nobody clears."""
    from pi_course.extensions import loader

    original = module.ResourceLoader.__init__

    class Lasting(loader.ExtensionLoader):
        def clear(self) -> None:
            return None

    def build(self: Any, **options: Any) -> None:
        original(self, **{"loader": Lasting(), **options})

    module.ResourceLoader.__init__ = build
