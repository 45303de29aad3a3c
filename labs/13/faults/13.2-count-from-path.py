"""The entries of the path are counted, though not all are messages."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Plant the mistake around the model that projects."""
    original = module.create_context_projecting_model

    def create_context_projecting_model(inner: Any, *, get_snapshot: Any, **options: Any) -> Any:
        def counted() -> Any:
            path = get_snapshot().active_path
            return module.ContextProjectionSnapshot(path, len(path))

        return original(inner, get_snapshot=counted, **options)

    module.create_context_projecting_model = create_context_projecting_model
