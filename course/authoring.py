"""A new course: what it is called, and its first tree, from the templates in this package."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from pathlib import Path

from course.addition import TEMPLATES, add_chapter
from course.catalog import load_course
from course.errors import InputError
from course.projects import render_project
from course.trees import read_template, write_tree


def write_course(course_id: str, folder: Path) -> None:
    """Write a new course into an empty folder: chapters 00 and 01, project files, pins. Raises InputError."""
    package = package_name(course_id)
    title = course_id.replace("-", " ").capitalize()
    answers = {"id": course_id, "package": package, "title": title}
    write_tree(render_project(read_template(TEMPLATES / "course"), answers), folder)
    write_tree(read_template(_project_template()), folder / "starters" / "_project")
    course = load_course(folder)
    add_chapter(course, "01", course.chapters[0])


def course_name(folder: Path) -> str:
    """The id that a new course has by its folder's name. Raises InputError."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    if not name:
        raise InputError(
            f"{folder.name} holds no letter from a to z to name a course by.", "Add --id my-course."
        )
    return name


def package_name(course_id: str) -> str:
    """The package that learners of a course write. Raises InputError where there is one of that name."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", course_id):
        raise InputError(
            f"{course_id!r} can't be a course's id: that is lower-case letters, digits and single hyphens.",
            "Choose one: --id my-course.",
        )
    name = course_id.replace("-", "_")
    if not name.isidentifier() or keyword.iskeyword(name) or _is_taken(name):
        raise InputError(
            f"Learners can't write a package {name}: Python has one, or no package can be called so.",
            "Choose another id: --id my-course.",
        )
    return name


def _is_taken(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return name in sys.stdlib_module_names or (spec is not None and spec.origin is not None)


def _project_template() -> Path:
    """The template of the project files: a wheel has it among these, a checkout where its course keeps it."""
    inside = TEMPLATES / "project"
    return inside if inside.is_dir() else TEMPLATES.parent.parent / "starters" / "_project"
