"""Reserved output and safety margin never reach the projection."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Leave out of the budget what is not total."""
    original = module.create_context_projecting_model

    def create_context_projecting_model(inner: Any, *, context: Any, **options: Any) -> Any:
        free = module.ContextBudget(context.total, context.estimate_tokens)
        return original(inner, context=free, **options)

    module.create_context_projecting_model = create_context_projecting_model
