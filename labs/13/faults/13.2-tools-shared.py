"""The inner model gets the Agent's own list of tools."""

from types import ModuleType
from typing import Any

from pi_course.model import ModelContext

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
        own: list[Any] = []

        def noted(context: Any, signal: Any) -> tuple[Any, Any]:
            own[:] = [context.tools]
            return context, signal

        def shared(context: Any, signal: Any) -> tuple[Any, Any]:
            return ModelContext(context.messages, context.system_prompt, own[0]), signal

        return _Between(original(_Between(inner, shared), get_snapshot=get_snapshot, **options), noted)

    module.create_context_projecting_model = create_context_projecting_model
