"""A place that comes twice is filled once."""

import re
from dataclasses import replace
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Hide the later places of each name while the template is rendered."""
    original = module.render_template

    def render_template(template: Any, args: Any) -> Any:
        seen: set[str] = set()

        def hide(place: re.Match[str]) -> str:
            if place[1] not in seen:
                seen.add(place[1])
                return place[0]
            return f"\0{place[1]}\0"

        body = re.sub(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}", hide, template.body)
        message = original(replace(template, body=body), args)
        message.content[0].text = re.sub(r"\0(\w+)\0", r"{{\1}}", message.content[0].text)
        return message

    module.render_template = render_template
