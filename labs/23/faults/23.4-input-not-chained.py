"""Every input handler sees the user's own text, not what those before it made of it."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


class _Differing:
    """An event that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Show each handler the first text."""
    runner = module.ExtensionRunner
    init, emit = runner.__init__, runner.emit_input

    def showing(text: str, handler: Any) -> Any:
        return lambda event: handler(_Differing(event, text=text))

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    async def emit_input(self: Any, text: str) -> Any:
        places = [each.handlers for each in self.given if each.handlers.get("input")]
        originals = [handlers["input"] for handlers in places]
        for handlers in places:
            handlers["input"] = [showing(text, each) for each in handlers["input"]]
        try:
            return await emit(self, text)
        finally:
            for handlers, original in zip(places, originals, strict=True):
                handlers["input"] = original

    runner.__init__, runner.emit_input = keep, emit_input
