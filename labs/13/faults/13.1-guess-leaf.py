"""A null leaf on a session with entries means the last line of the file."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Let `create_runtime` choose a leaf where the caller chose none."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        entries = await deps.session.entries()
        if config.active_leaf_id is None and entries:
            config = module.RuntimeConfig(
                entries[-1].id, config.context, config.system_prompt, config.max_steps
            )
        return await original(config, deps)

    module.create_runtime = create_runtime
