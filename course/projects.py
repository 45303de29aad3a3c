"""The one door to Copier: a course's project files, rendered."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

from course.errors import CourseError
from course.trees import Tree, write_tree


class TemplateError(CourseError):
    """The course's project template can't be rendered."""


def render_project(template: Tree, answers: dict[str, Any]) -> Tree:
    """Render a Copier template: path and bytes of each file, LF line ends. Raises TemplateError."""
    if not template:
        raise TemplateError(
            "The course has no Copier template of the project files.",
            "A course keeps it in starters/_project.",
        )
    with tempfile.TemporaryDirectory(prefix="course-project-") as folder:
        source, root = Path(folder, "template"), Path(folder, "project")
        write_tree(template, source)
        copy_project(source, root, answers)
        return {
            path.relative_to(root).as_posix(): path.read_bytes().replace(b"\r\n", b"\n")
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


def copy_project(template: Path, folder: Path, answers: dict[str, Any]) -> None:
    """Copy a Copier template into a folder. Raises TemplateError."""
    from copier import run_copy
    from copier.errors import CopierError
    from jinja2 import TemplateError as JinjaError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_copy(
                str(template), folder, data=answers, defaults=True, overwrite=True, quiet=True, unsafe=False
            )
    except (CopierError, JinjaError, ValueError) as error:
        raise TemplateError(f"The project template {template} can't be rendered: {error}.") from error
