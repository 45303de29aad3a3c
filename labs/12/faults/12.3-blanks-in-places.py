"""Places with blanks are filled too."""

import re
from dataclasses import replace
from types import ModuleType
from typing import Any


def inject(module: ModuleType) -> None:
    """Take the blanks out of places before the template is rendered."""
    original = module.render_template

    def render_template(template: Any, args: Any) -> Any:
        body = re.sub(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}", r"{{\1}}", template.body)
        return original(replace(template, body=body), args)

    module.render_template = render_template
