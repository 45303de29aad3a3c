"""The mode is looked at when there is something to write."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Replace `run_mode`."""
    original = module.run_mode

    async def run_mode(runtime: Any, mode: str, prompt: str, io: Any) -> Any:
        known = mode in {"interactive", "print", "json"}
        if not known:
            await runtime.prompt(prompt)
        return await original(runtime, mode, prompt, io)

    module.run_mode = run_mode
