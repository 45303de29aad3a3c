"""A count out of bounds is bent until it fits."""

from types import ModuleType
from typing import Any

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
        room = 0

        def measured(context: Any, signal: Any) -> tuple[Any, Any]:
            nonlocal room
            room = len(context.messages)
            return context, signal

        def bent() -> Any:
            snapshot = get_snapshot()
            count = max(0, min(int(snapshot.persisted_message_count), room))
            return module.ContextProjectionSnapshot(snapshot.active_path, count)

        return _Between(original(inner, get_snapshot=bent, **options), measured)

    module.create_context_projecting_model = create_context_projecting_model
