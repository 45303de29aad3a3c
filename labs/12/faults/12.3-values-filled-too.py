"""A value that looks like a place is filled as well."""

from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Go over the finished text once more with every argument."""
    original = module.render_template

    def render_template(template: Any, args: Any) -> Any:
        message = original(template, args)
        for name, value in args.items():
            message.content[0].text = message.content[0].text.replace("{{" + name + "}}", value)
        return message

    module.render_template = render_template
