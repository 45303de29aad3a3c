"""Of two aliases the one that was found first stays, and packages are looked at first."""

import os
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.packages"


def inject(module: ModuleType) -> None:
    """Let what a package offers hide its aliases of a better rank."""
    original = module.resolve_extensions

    def resolve_extensions(*, project: Any, user: Any, cli: Any = (), **options: Any) -> Any:
        resolved = original(project=project, user=user, cli=cli, **options)
        projects, users = [module.ExtensionSettings([], each.packages) for each in (project, user)]
        alone = original(project=projects, user=users, **options).paths
        packed = [each for each in alone if each.metadata.origin == "package" and each.path[0] != "<"]
        hidden = {os.path.realpath(each.path) for each in packed}
        rest = [each for each in resolved.paths if os.path.realpath(each.path) not in hidden]
        offered = [each for each in rest if each.path[0] == "<"]
        resolved.paths[:] = [each for each in rest if each not in offered] + packed + offered
        return resolved

    module.resolve_extensions = resolve_extensions
