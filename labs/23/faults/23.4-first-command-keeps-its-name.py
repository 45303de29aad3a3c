"""Of several commands of one name the first stays bare."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Number from the second command of a name on."""
    runner = module.ExtensionRunner
    init = runner.__init__

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    def commands(self: Any) -> Any:
        named: dict[str, Any] = {}
        for each in self.given:
            for name, command in each.commands.items():
                free, number = name, 1
                while free in named:
                    number += 1
                    free = f"{name}:{number}"
                named[free] = command
        return named

    runner.__init__, runner.commands = keep, commands
