"""A damaged store says nothing, and is written anew."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.trust"


def inject(module: ModuleType) -> None:
    """Take damage for an empty store."""
    original = module.TrustStore.get

    def get(self: Any, directory: Any) -> Any:
        try:
            return original(self, directory)
        except module.TrustStoreError:
            return None

    module.TrustStore.get = get
