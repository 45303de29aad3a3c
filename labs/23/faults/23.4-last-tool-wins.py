"""Of two extensions' tools or flags of one name the later wins."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.runner"


def inject(module: ModuleType) -> None:
    """Merge the extensions' maps one over the other."""
    runner = module.ExtensionRunner
    init = runner.__init__

    def keep(self: Any, extensions: Any, runtime: Any, **options: Any) -> None:
        self.given = [*extensions]
        init(self, extensions, runtime, **options)

    def merged(kind: str) -> Any:
        return lambda self: {name: item for each in self.given for name, item in getattr(each, kind).items()}

    runner.__init__, runner.tools, runner.flags = keep, merged("tools"), merged("flags")
