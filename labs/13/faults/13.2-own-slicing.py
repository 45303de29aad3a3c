"""The model gets the last few messages, whatever they cost and wherever that cuts."""

from types import ModuleType
from typing import Any

from pi_course.model import ModelContext
from pi_course.values import clone

MODULE = "pi_course.composition"


class _Between:
    """A model that changes a request on its way to the inner model."""

    def __init__(self, inner: Any, change: Any) -> None:
        self._inner = inner
        self._change = change

    def stream(self, context: Any, signal: Any) -> Any:
        return self._inner.stream(*self._change(context, signal))


def inject(module: ModuleType) -> None:
    """Plant the mistake around the model that projects."""
    original = module.create_context_projecting_model

    def create_context_projecting_model(inner: Any, *, get_snapshot: Any, **options: Any) -> Any:
        recent: list[Any] = []

        def noted(context: Any, signal: Any) -> tuple[Any, Any]:
            recent[:] = clone(context.messages[-5:])
            return context, signal

        def sliced(context: Any, signal: Any) -> tuple[Any, Any]:
            return ModelContext(list(recent), context.system_prompt, context.tools), signal

        return _Between(original(_Between(inner, sliced), get_snapshot=get_snapshot, **options), noted)

    module.create_context_projecting_model = create_context_projecting_model
