"""The path is looked at once, when the model is made."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Plant the mistake around the model that projects."""
    original = module.create_context_projecting_model

    def create_context_projecting_model(inner: Any, *, get_snapshot: Any, **options: Any) -> Any:
        snapshot = get_snapshot()
        return original(inner, get_snapshot=lambda: snapshot, **options)

    module.create_context_projecting_model = create_context_projecting_model
