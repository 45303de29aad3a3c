"""Prompts once for the reason and once for the text."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Return reason and text of the outcome."""
    reason = (await runtime.prompt(prompt)).reason
    messages = (await runtime.prompt(prompt)).messages
    texts = [text_of(message) for message in messages if message.role == "assistant"]
    return {"reason": reason, "text": texts[-1] if texts else ""}
