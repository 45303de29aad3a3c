"""The output's error comes out inside another one."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"


def inject(module: ModuleType) -> None:
    """Replace `run_mode`."""
    original = module.run_mode

    async def run_mode(runtime: Any, mode: str, prompt: str, io: Any) -> Any:
        return await original(runtime, mode, prompt, _Changed(io))

    module.run_mode = run_mode


class _Changed:
    """An output that changes what is written on its way."""

    def __init__(self, io: Any) -> None:
        self._io = io

    async def write(self, text: str) -> None:
        try:
            await self._io.write(text)
        except Exception as error:
            raise RuntimeError("could not write the output") from error
