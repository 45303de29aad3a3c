"""Collects what every assistant said and keeps the last."""

from pi_course.composition import Runtime
from pi_course.messages import AssistantMessage, text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Prompt once and return reason and text of the outcome."""
    result = await runtime.prompt(prompt)
    texts = [text_of(message) for message in result.messages if isinstance(message, AssistantMessage)]
    return {"reason": result.reason, "text": (texts or [""])[-1]}
