"""The resources stand before the configured system prompt."""

from types import ModuleType
from typing import Any

from pi_course.resources import ResourceCatalog, format_resource_context

MODULE = "pi_course.composition"

_PARTS = ("model", "tools", "session", "resources", "extension_host", "create_id", "now")


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Join the two parts of the system prompt the wrong way round."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        joined = "\n\n".join(
            filter(None, [format_resource_context(deps.resources, []), config.system_prompt])
        )
        config = module.RuntimeConfig(config.active_leaf_id, config.context, joined or None, config.max_steps)
        parts = {name: getattr(deps, name) for name in _PARTS} | {
            "resources": ResourceCatalog([], [], [], [])
        }
        return _Disguised(await original(config, module.RuntimeDeps(**parts)), resources=deps.resources)

    module.create_runtime = create_runtime
