"""Turns an error of the prompt into an ordinary answer."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Return reason and text of the outcome."""
    try:
        result = await runtime.prompt(prompt)
    except Exception as error:  # noqa: BLE001 - this is what it does wrong
        return {"reason": "error", "text": str(error)}
    texts = [text_of(message) for message in result.messages if message.role == "assistant"]
    return {"reason": result.reason, "text": texts[-1] if texts else ""}
