"""On an empty session a leaf's name is taken for a new session."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Let `create_runtime` overlook the leaf where there are no entries."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        if not await deps.session.entries():
            config = module.RuntimeConfig(None, config.context, config.system_prompt, config.max_steps)
        return await original(config, deps)

    module.create_runtime = create_runtime
