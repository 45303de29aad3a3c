"""The one door to Copier: a course's project files, rendered."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

from course.catalog import Chapter, Course
from course.errors import CourseError
from course.git import shut_out_user
from course.leftovers import temporary_folder
from course.manifest import FORMAT
from course.trees import Tree, read_template, write_tree

# Copier changes the process's current directory while it looks at a template: two at once would lose it.
_LOCK = threading.Lock()


class TemplateError(CourseError):
    """The course's project template can't be rendered."""


def render_project(template: Tree, answers: dict[str, Any]) -> Tree:
    """Render a Copier template: path and bytes of each file, LF line ends. Raises TemplateError."""
    if not template:
        raise TemplateError(
            "The course has no Copier template of the project files.",
            "A course keeps it in starters/_project.",
        )
    with temporary_folder("project") as folder:
        source, root = folder / "template", folder / "project"
        write_tree(template, source)
        copy_project(source, root, answers)
        return {
            path.relative_to(root).as_posix(): path.read_bytes().replace(b"\r\n", b"\n")
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


def copy_project(template: Path, folder: Path, answers: dict[str, Any]) -> None:
    """Copy a Copier template into a folder. Raises TemplateError."""
    shut_out_user()
    from copier import Settings, run_copy
    from copier.errors import CopierError
    from jinja2 import TemplateError as JinjaError

    try:
        with _LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_copy(
                str(template), folder, data=answers, defaults=True, overwrite=True, quiet=True, unsafe=False,
                settings=Settings(),
            )  # fmt: skip
    except (CopierError, JinjaError, ValueError) as error:
        raise TemplateError(f"The project template {template} can't be rendered: {error}.") from error


def project_files(course: Course, chapter: Chapter | None = None, language: str = "") -> Tree:
    """The project files of a chapter's practice in one language, or without a chapter of a checkpoint."""
    template = read_template(course.root / "starters" / "_project")
    return render_project(template, project_answers(course, chapter, language))


def project_answers(course: Course, chapter: Chapter | None, language: str) -> dict[str, Any]:
    """What the Copier template of the project files is told.

    Without a chapter the files are those of a checkpoint. Chapters and labs are those whose tests the tree
    holds, so that its pyproject registers each marker.
    """
    upto = course.until(chapter) if chapter is not None else course.chapters
    shown = language or course.manifest.languages[0]
    tables = [_chapter_answers(one, shown) for one in upto if one.is_practice]
    return {
        "format": FORMAT,
        "course_id": course.manifest.id,
        "course_title": _in(course.manifest.title, shown),
        "package": course.manifest.package,
        "language": shown,
        "chapters": tables,
        "practice": tables[-1] if chapter is not None else None,
        "parent": (chapter.manifest.parent or "") if chapter is not None else "",
    }


def _chapter_answers(chapter: Chapter, language: str) -> dict[str, Any]:
    manifest = chapter.manifest
    return {
        "id": chapter.id,
        "marker": chapter.marker,
        "extra": chapter.extra_marker,
        "tests": chapter.test_count,
        "title": _in(manifest.title, language),
        "summary": _in(manifest.summary, language),
        "first_step": _in(manifest.first_step or {}, language),
        "teaching_files": list(manifest.teaching_files),
        "focus_test": manifest.focus_test,
        "labs": [
            {
                "id": lab.id,
                "marker": lab.marker,
                "tests": lab.tests,
                "title": _in(lab.title, language),
                "goal": _in(lab.goal, language),
                "first_red": lab.first_red,
            }
            for lab in manifest.lab
        ],
    }


def _in(text: dict[str, str], language: str) -> str:
    return text.get(language) or next(iter(text.values()), "")
