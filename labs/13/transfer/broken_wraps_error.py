"""Raises an error of its own, of a fitting class, in place of the one that the prompt raised."""

from pi_course.composition import Runtime
from pi_course.messages import text_of


async def run_library(runtime: Runtime, prompt: str) -> dict[str, str]:
    """Return reason and text of the outcome."""
    try:
        result = await runtime.prompt(prompt)
    except Exception as error:
        library_error = type("LibraryError", (type(error),), {})
        raise library_error(*error.args) from error
    texts = [text_of(message) for message in result.messages if message.role == "assistant"]
    return {"reason": result.reason, "text": texts[-1] if texts else ""}
