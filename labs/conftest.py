"""Runs the labs' tests in this repository: against the reference, or by --tree a starter or a stage."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from course.catalog import Chapter, Course, load_course
from course.errors import CourseError
from course.projects import project_files
from course.stages import stage_tree
from course.trees import Tree, practice_tree, target_tree, write_tree

ROOT = Path(__file__).resolve().parent.parent
LAST = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Write the chosen tree, put its package first on the path, and count its labs at the end."""
    try:
        course = load_course(ROOT)
        tree = _chosen_tree(course, config)
        tree |= project_files(course)
    except CourseError as error:
        raise pytest.UsageError(error.message) from error
    for chapter in course.practice_chapters:
        for marker in (chapter.marker, chapter.extra_marker, *(lab.marker for lab in chapter.manifest.lab)):
            config.addinivalue_line("markers", f"{marker}: chapter {chapter.id}")
    folder = Path(tempfile.mkdtemp(prefix="course-tree-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    write_tree(tree, folder)
    sys.path.insert(0, str(folder / "src"))
    if config.option.collectonly:
        return
    spec = importlib.util.spec_from_file_location("course_lab_count", folder / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    closing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(closing)
    config.pluginmanager.register(closing.LabCount(folder / "pyproject.toml"), "course-lab-count")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the chapters that the chosen tree does not hold."""
    folder = collection_path.name if collection_path.parent == Path(__file__).parent else ""
    return True if folder.isdigit() and int(folder) > int(config.stash[LAST]) else None


def _chosen_tree(course: Course, config: pytest.Config) -> Tree:
    wanted = config.getoption("--tree")
    if wanted == "target":
        chapter = course.chapters[-1]
        tree = target_tree(course, chapter)
    elif wanted == "starter":
        chapter = _named_chapter(course, config)
        tree = practice_tree(course, chapter)
    else:
        chapter, lab = course.lab(wanted)
        tree = stage_tree(course, chapter, lab.id)
    config.stash[LAST] = chapter.id
    return tree


def _named_chapter(course: Course, config: pytest.Config) -> Chapter:
    numbers = set(re.findall(r"\b(?:lab|extra)(\d+)", config.getoption("markexpr") or ""))
    if len(numbers) != 1:
        raise pytest.UsageError("--tree starter needs one chapter: name it by -m, as -m lab12_1")
    return course.practice_chapter(numbers.pop())
