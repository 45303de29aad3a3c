"""What comes back is the runtime's own result."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Replace `run_mode`."""
    original = module.run_mode

    async def run_mode(runtime: Any, mode: str, prompt: str, io: Any) -> Any:
        kept: list[Any] = []

        class Noting:
            """The runtime, with an eye on its answer."""

            async def prompt(self, value: Any) -> Any:
                kept.append(await runtime.prompt(value))
                return kept[-1]

        await original(Noting(), mode, prompt, io)
        return kept[-1]

    module.run_mode = run_mode
