"""A chapter added to a course: put together in a copy, proven to load and to build there, then moved in.

Decision: its folders come first and course.toml last, because only that makes a chapter; what a killed run
leaves is thus no part of the course, and the next run takes it over where it is just what it would write.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

from course.catalog import Chapter, Course, load_course
from course.edition import course_files
from course.errors import CourseError, InputError
from course.history import open_history
from course.leftovers import partial_folder, sweep_partials
from course.pins import write_pins
from course.projects import render_project
from course.trees import Tree, read_template, write_tree

TEMPLATES = Path(__file__).parent / "templates"
_KIND = "chapter"
_TOPS = ("starters", "solutions", "labs")
_CHAPTERS = re.compile(r"(?m)^(chapters\s*=\s*\[)([^\]]*)(\])")


def place_of(course: Course, number: str, parent: str | None) -> tuple[str, Chapter]:
    """A new chapter's id and the chapter that it follows. Raises InputError."""
    known = ", ".join(course.by_id)
    if not (number.isascii() and number.isdigit()):
        raise InputError(f"{number!r} is not a chapter number.", f"Chapters so far: {known}.")
    chapter_id = f"{int(number):02d}"
    free = f"{int(course.chapters[-1].id) + 1:02d}"
    if any(int(one.id) == int(chapter_id) for one in course.chapters):
        raise InputError(f"This course has a chapter {chapter_id} already.", f"The next is {free}.")
    before = [one for one in course.chapters if int(one.id) < int(chapter_id)]
    if not before:
        raise InputError(
            f"Nothing comes before the first chapter, {course.chapters[0].id}.", f"The next is {free}."
        )
    if parent is not None and course.chapter(parent) is not before[-1]:
        raise InputError(
            f"Chapter {chapter_id} would follow {before[-1].id}, not {parent}.",
            "The parent is the chapter before; take another number, or leave --parent out.",
        )
    return chapter_id, before[-1]


def add_chapter(course: Course, chapter_id: str, parent: Chapter) -> list[str]:
    """Add a chapter behind `parent`, whole or not at all, pin anew and give its files. Raises CourseError."""
    sweep_partials(course.root, _KIND)
    tree = _chapter_tree(course, chapter_id, parent)
    _refuse_taken(course, chapter_id, tree)
    with partial_folder(course.root, _KIND) as work:
        stage = work / "course"
        write_tree({name: (course.root / name).read_bytes() for name in course_files(course)}, stage)
        write_tree(tree, stage)
        changed = [*_follow(course, chapter_id, parent, stage), _list(chapter_id, parent, stage)]
        staged = load_course(stage)
        if chapter_id not in staged.by_id:
            raise _not_laid_out(stage / changed[-1])
        pins = write_pins(staged, open_history(staged).checkpoints)
        changed.insert(0, pins.relative_to(stage).as_posix())
        _install(course.root, stage, chapter_id, changed)
    return sorted(tree)


def _chapter_tree(course: Course, chapter_id: str, parent: Chapter) -> Tree:
    languages = course.manifest.languages
    answers = {
        "id": chapter_id,
        "parent": parent.id,
        "package": course.manifest.package,
        "size": int(chapter_id) + 1,
        "languages": languages,
    }
    tree = render_project(read_template(TEMPLATES / "chapter"), answers)
    handouts = {name: tree.pop(f"labs/{chapter_id}/handout.{name}.md") for name in ("en", "zh")}
    for one in languages:
        tree[f"labs/{chapter_id}/handout.{one}.md"] = handouts.get(one, handouts["en"])
    return tree


def _refuse_taken(course: Course, chapter_id: str, tree: Tree) -> None:
    """Refuse where the chapter's folders hold anything but what a killed run left of the same chapter."""
    for top in _TOPS:
        for path in sorted((course.root / top / chapter_id).rglob("*")):
            name = path.relative_to(course.root).as_posix()
            if path.is_file() and tree.get(name) != path.read_bytes():
                raise InputError(
                    f"{name} is there, without a chapter {chapter_id} in course.toml; nothing was touched.",
                    "Move it away, or take another number.",
                )


def _follow(course: Course, chapter_id: str, parent: Chapter, stage: Path) -> list[str]:
    """Let the chapter that stood behind the parent stand behind the new one."""
    behind = course.chapters[course.chapters.index(parent) + 1 :]
    if not behind:
        return []
    name = f"labs/{behind[0].id}/lab.toml"
    _replace_once(stage / name, rf'(?m)^(parent\s*=\s*"){parent.id}(")', rf"\g<1>{chapter_id}\g<2>")
    return [name]


def _list(chapter_id: str, parent: Chapter, stage: Path) -> str:
    """List the chapter in course.toml, whose other lines stay as they are."""
    name = "checkpoints/course.toml"
    text = (stage / name).read_text("utf-8")
    found = _CHAPTERS.search(text)
    listed = found[2].replace(f'"{parent.id}"', f'"{parent.id}", "{chapter_id}"') if found is not None else ""
    _replace_once(stage / name, _CHAPTERS.pattern, rf"\g<1>{listed}\g<3>")
    return name


def _replace_once(file: Path, pattern: str, by: str) -> None:
    text, count = re.subn(pattern, by, file.read_bytes().decode("utf-8-sig"))
    if count != 1:
        raise _not_laid_out(file)
    file.write_bytes(text.encode("utf-8"))


def _not_laid_out(file: Path) -> CourseError:
    return CourseError(
        f"{file.parent.name}/{file.name} is not laid out so that a chapter can be added to it.",
        'Write `chapters = ["00"]` and `parent = "00"` as lines of their own, without a comment.',
    )


def _install(root: Path, stage: Path, chapter_id: str, changed: list[str]) -> None:
    """Move the chapter's folders and the changed files into the course; what ends it takes all back."""
    with ExitStack() as undo:
        for top in _TOPS:
            home = root / top / chapter_id
            home.parent.mkdir(exist_ok=True)
            away = stage.parent / f"{top}-before"
            if home.exists():
                home.rename(away)
            undo.callback(_rename, home, stage.parent / f"{top}-after")
            (stage / top / chapter_id).rename(home)
        for name in changed:
            before = (root / name).read_bytes() if (root / name).is_file() else None
            undo.callback(_restore, root / name, before)
            (stage / name).replace(root / name)
        undo.pop_all()


def _rename(path: Path, target: Path) -> None:
    if path.exists():
        path.rename(target)


def _restore(file: Path, data: bytes | None) -> None:
    if data is None:
        file.unlink(missing_ok=True)
    elif file.read_bytes() != data:
        file.write_bytes(data)
