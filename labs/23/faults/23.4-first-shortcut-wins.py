"""Of several shortcuts of one key the first wins."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Treat shortcuts like tools."""
    runner = module.ExtensionRunner
    init = runner.__init__

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    def shortcuts(self: Any) -> Any:
        return {key: item for each in reversed(self.given) for key, item in each.shortcuts.items()}

    runner.__init__, runner.shortcuts = keep, shortcuts
