"""A handler that is undecided refuses."""

import inspect
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Let handlers say no instead of nothing."""
    runner = module.ExtensionRunner
    init = runner.__init__

    def firm(handler: Any) -> Any:
        async def handle(event: Any) -> Any:
            answer = handler(event)
            said = await answer if inspect.isawaitable(answer) else answer
            return "no" if said == "undecided" else said

        return handle

    def build(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        for each in extensions:
            if "project_trust" in each.handlers:
                each.handlers["project_trust"] = [firm(one) for one in each.handlers["project_trust"]]
        init(self, extensions, runtime, **options)

    runner.__init__ = build
