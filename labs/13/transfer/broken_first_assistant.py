"""Returns what the first assistant of the transcript said."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Return reason and text of the outcome."""
    result = await runtime.prompt(prompt)
    texts = [text_of(message) for message in result.messages if message.role == "assistant"]
    return {"reason": result.reason, "text": texts[0] if texts else ""}
