"""The loader helper's scan is the production scan."""

from types import ModuleType

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Use one scan for both."""
    module.discover_extensions_in_dir = module.collect_auto_extensions
