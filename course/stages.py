"""The state "labs 1 to k done, the rest still starter", derived from starter and target unit by unit.

Decision: derived and never stored, because near-copies of whole files rot. A unit takes its target form with
the lab that its scaffold line names (or that lab.toml's `completes` says), a form that two labs share lies in
`stages/<lab>/`, and a private helper comes with the first unit that mentions it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from course.catalog import Chapter, Course
from course.errors import CourseError
from course.trees import Tree, lab_tests, parent_tree, read_tree, solution_tree, starter_tree
from course.units import Unit, classes_of, split_units

_SCAFFOLD = re.compile(r"raise NotImplementedError\(\s*[\"'][^\"']*?(\d+\.\d+)\b")


_DEFINITION = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.AugAssign
)


class StageError(CourseError):
    """A stage can't be derived from the chapter's starter and target."""


@dataclass(frozen=True, kw_only=True)
class FileForms:
    """What a teaching file looks like where the chapter starts, where it ends, and at the labs between."""

    path: str
    starter: str
    target: str
    between: Mapping[int, str]


def stage_tree(course: Course, chapter: Chapter, lab_id: str) -> Tree:
    """The chapter's tree with its labs up to `lab_id` done. Raises StageError."""
    index = [lab.id for lab in chapter.manifest.lab].index(chapter.lab(lab_id).id)
    parent = parent_tree(course, chapter)
    tree = parent | lab_tests(chapter) | starter_tree(chapter) | solution_tree(chapter)
    if index == len(chapter.manifest.lab) - 1:
        return tree
    for path, data in solution_tree(chapter).items():
        start = starter_tree(chapter).get(path, parent.get(path))
        if start is None or not path.endswith(".py"):
            continue
        forms = FileForms(
            path=path,
            starter=start.decode("utf-8"),
            target=data.decode("utf-8"),
            between=_forms_between(chapter, path),
        )
        tree[path] = derive_stage(forms, chapter, index).encode("utf-8")
    return tree


def _forms_between(chapter: Chapter, path: str) -> dict[int, str]:
    forms = {}
    for index, lab in enumerate(chapter.manifest.lab):
        tree = read_tree(chapter.solution_dir / "stages" / lab.id)
        if path in tree:
            forms[index] = tree[path].decode("utf-8")
    return forms


def derive_stage(forms: FileForms, chapter: Chapter, index: int) -> str:
    """One file's text when the labs 0 to `index` of the chapter are done. Raises StageError."""
    try:
        return _Stage(forms, chapter, index).text()
    except SyntaxError as error:
        raise StageError(f"Chapter {chapter.id}: {forms.path} can't be parsed: {error}.") from error


class _Stage:
    """The choice of units for one file at one lab."""

    def __init__(self, forms: FileForms, chapter: Chapter, index: int) -> None:
        others = [classes_of(source) for source in (forms.starter, *forms.between.values())]
        opened = {name for name in classes_of(forms.target) if any(name in classes for classes in others)}
        self._target = split_units(forms.target, opened)
        self._starter = {unit.key: unit for unit in split_units(forms.starter, opened)}
        self._between = {
            at: {unit.key: unit for unit in split_units(source, opened)}
            for at, source in forms.between.items()
        }
        self._opened = opened
        self._order = [lab.id for lab in chapter.manifest.lab]
        self._completes = {name: lab.id for lab in chapter.manifest.lab for name in lab.completes}
        self._index = index

    def text(self) -> str:
        chosen = self._known_units()
        self._add_mentioned(chosen)
        body = [unit for unit in self._in_order() if unit.key in chosen]
        used = frozenset[str]().union(*(chosen[unit.key].mentions for unit in body if not unit.is_import))
        bound: set[str] = set()
        parts = []
        for unit in body:
            text = _import_text(unit, used, bound) if unit.is_import else chosen[unit.key].text
            parts.append(text)
        return "".join(parts).lstrip("\n")

    def _in_order(self) -> list[Unit]:
        """Every unit in the target's order; what only the starter has stands where the starter has it."""
        ordered = list(self._target)
        keys = [unit.key for unit in ordered]
        before = ""
        for unit in self._starter.values():
            if unit.key not in keys:
                at = keys.index(before) + 1 if before in keys else 0
                ordered.insert(at, unit)
                keys.insert(at, unit.key)
            before = unit.key
        return ordered

    def _known_units(self) -> dict[str, Unit]:
        """The units that need no mention to be there, in the form they have at this lab."""
        chosen = dict(self._starter)
        for at in sorted(self._between):
            if at <= self._index:
                forms = self._between[at].items()
                chosen |= {
                    k: self._spaced(u) for k, u in forms if not self._is_head(k) and u.node is not None
                }
        for unit in self._target:
            if self._is_known(unit) and self._completed(unit.key):
                chosen[unit.key] = unit
        return chosen

    def _spaced(self, unit: Unit) -> Unit:
        """A form between, with as many blank lines before it as the definition has elsewhere."""
        model = next((one for one in self._target if one.key == unit.key), unit)
        blank = len(model.text) - len(model.text.lstrip("\n"))
        return replace(unit, text="\n" * blank + unit.text.lstrip("\n"))

    def _is_head(self, key: str) -> bool:
        return key in self._opened or key in ("(docstring)", "(end of file)")

    def _is_known(self, unit: Unit) -> bool:
        """Whether a target unit stands in the starter or in a stage form, or is not a definition at all."""
        if unit.key in self._starter or unit.key in self._completes or unit.is_import or unit.node is None:
            return True
        if any(unit.key in units for units in self._between.values()):
            return True
        return not isinstance(unit.node, _DEFINITION)

    def _completed(self, key: str) -> bool:
        lab = self._completes.get(key)
        if lab is None and key in self._starter:
            scaffold = _SCAFFOLD.search(self._starter[key].text)
            lab = scaffold[1] if scaffold is not None else None
        return lab not in self._order or self._order.index(str(lab)) <= self._index

    def _add_mentioned(self, chosen: dict[str, Unit]) -> None:
        """Add the target's new units that chosen ones mention, and what these mention in turn."""
        waiting = {
            unit.key: unit for unit in self._target if unit.key not in chosen and not self._is_known(unit)
        }
        mentioned = frozenset[str]().union(*(u.mentions for u in chosen.values()))
        changed = {
            k: u for k, u in chosen.items() if k not in self._starter or self._starter[k].text != u.text
        }
        grown = frozenset[str]().union(*(u.mentions for u in changed.values()))
        grown |= {key.rpartition(".")[0] for key in changed}
        while True:
            found = [u for u in waiting.values() if _is_mentioned(u, mentioned, grown)]
            if not found:
                return
            for unit in found:
                chosen[unit.key] = waiting.pop(unit.key)
                mentioned |= unit.mentions
                grown |= unit.mentions | {unit.key.rpartition(".")[0]}


def _is_mentioned(unit: Unit, mentioned: Iterable[str], grown: Iterable[str]) -> bool:
    """A name is mentioned by anything; a class's own protocol (`__init__`) by code beyond the starter's.

    `grown` holds what that code mentions, and the classes that it stands in.
    """
    name = unit.name.partition("#")[0]
    if name.startswith("__") and "." in unit.key:
        return unit.key.rpartition(".")[0] in grown
    return name in mentioned


def _import_text(unit: Unit, used: frozenset[str], bound: set[str]) -> str:
    """An import's text with the names that the file uses and no earlier import binds."""
    node = unit.node
    assert isinstance(node, ast.Import | ast.ImportFrom)
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return unit.text
    kept = []
    for alias in node.names:
        name = (alias.asname or alias.name).partition(".")[0]
        if name in used and name not in bound:
            kept.append(alias)
            bound.add(name)
    if len(kept) == len(node.names):
        return unit.text
    if not kept:
        return "\n" if unit.text.startswith("\n") else ""
    lead = unit.text[: len(unit.text) - len(unit.text.lstrip("\n"))]
    if isinstance(node, ast.Import):
        return f"{lead}{ast.unparse(ast.Import(names=kept))}\n"
    return f"{lead}{ast.unparse(ast.ImportFrom(module=node.module, names=kept, level=node.level))}\n"
