"""Leaves the reason empty."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Return reason and text of the outcome."""
    result = await runtime.prompt(prompt)
    texts = [text_of(message) for message in result.messages if message.role == "assistant"]
    return {"reason": "", "text": texts[-1] if texts else ""}
