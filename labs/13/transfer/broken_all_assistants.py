"""Returns what all assistants of the transcript said, one after the other."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Return reason and text of the outcome."""
    result = await runtime.prompt(prompt)
    text = "".join(text_of(message) for message in result.messages if message.role == "assistant")
    return {"reason": result.reason, "text": text}
