"""Only the last message that is not persisted joins the path."""

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
        def shortened(context: Any, signal: Any) -> tuple[Any, Any]:
            count = get_snapshot().persisted_message_count
            if count not in range(len(context.messages)):
                return context, signal
            messages = [*context.messages[:count], context.messages[-1]]
            return ModelContext(messages, context.system_prompt, context.tools), signal

        return _Between(original(inner, get_snapshot=get_snapshot, **options), shortened)

    module.create_context_projecting_model = create_context_projecting_model
