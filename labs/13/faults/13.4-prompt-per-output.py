"""JSON output asks the model a second time."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Replace `run_mode`."""
    original = module.run_mode

    async def run_mode(runtime: Any, mode: str, prompt: str, io: Any) -> Any:
        if mode == "json":
            await runtime.prompt(prompt)
        return await original(runtime, mode, prompt, io)

    module.run_mode = run_mode
