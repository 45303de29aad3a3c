"""Looks for the last assistant from the end of the transcript."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Prompt once and return reason and text of the outcome."""
    result = await runtime.prompt(prompt)
    for message in reversed(result.messages):
        if message.role == "assistant":
            return {"reason": result.reason, "text": text_of(message)}
    return {"reason": result.reason, "text": ""}
