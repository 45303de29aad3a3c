"""Chapter 12: text resources enter the context on demand, code passes the trust gate first."""

import asyncio
import dataclasses
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pi_course import resources
from pi_course.context import build_context
from pi_course.messages import TextContent, ToolCall, ToolResultMessage, UserMessage
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.session import MessageEntry
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry

T = TypeVar("T")


# --- files of the running example ------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def write_skill(root: Path, folder: str, name: str, description: str, body: str) -> Path:
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}"
    return write(root / "skills" / folder / "SKILL.md", text)


def write_project(root: Path) -> Path:
    """The project of the chapter: rules, the review skill with its checklist, the review template."""
    write(root / "AGENTS.md", "PROJECT RULES\n")
    write_skill(root, "review", "review", "project review", "Read the diff first.\n")
    write(root / "skills" / "review" / "references" / "checklist.md", "tests\nsecurity\n")
    write(root / "templates" / "review.md", "Review {{target}} for {{owner}}")
    return root


def write_user(root: Path) -> Path:
    """The user's own folder: a skill and a template of the same names, and one skill more."""
    write_skill(root, "my-review", "review", "user review", "USER BODY\n")
    write_skill(root, "notes", "notes", "user notes", "NOTES BODY\n")
    write(root / "templates" / "review.md", "User review of {{target}}")
    return root


def plain(value: Any) -> Any:
    """The value as data, to compare or to search it as a whole."""
    return dataclasses.asdict(value)


# --- Lab 12.1 --------------------------------------------------------------------------------------------


@pytest.mark.lab12
@pytest.mark.lab12_1
async def test_the_first_root_wins_for_each_kind_and_name(tmp_path: Path) -> None:
    """Of two resources of one kind and name the earlier root's wins; twice in one root is an error."""
    # The folders' names sort against the order of the roots, whichever way round that is.
    for first, second in (("z-project", "a-user"), ("a-project", "z-user")):
        project, user = write_project(tmp_path / first), write_user(tmp_path / second)

        catalog = await resources.discover_resources([project, user])
        assert {skill.name: skill.description for skill in catalog.skills} == {
            "review": "project review",
            "notes": "user notes",
        }
        assert [template.body for template in catalog.templates] == ["Review {{target}} for {{owner}}"]
        assert [each.body for each in catalog.instructions] == ["PROJECT RULES\n"]
        winner = next(skill for skill in catalog.skills if skill.name == "review")
        assert winner.source == os.path.realpath(project / "skills" / "review" / "SKILL.md")
        assert winner.root == os.path.realpath(project / "skills" / "review")

        swapped = await resources.discover_resources([str(user), str(project)])
        assert {skill.name: skill.description for skill in swapped.skills} == {
            "review": "user review",
            "notes": "user notes",
        }
        assert [template.body for template in swapped.templates] == ["User review of {{target}}"]
        assert [each.body for each in swapped.instructions] == ["PROJECT RULES\n"]
        # A skill and a template may share a name: identity is the kind and the name.
        for found in (catalog, swapped):
            assert sorted((each.kind, each.name) for each in found.resources) == [
                ("instructions", "AGENTS"),
                ("skill", "notes"),
                ("skill", "review"),
                ("template", "review"),
            ]

    clash = tmp_path / "clash"
    one = write_skill(clash, "one", "review", "first", "")
    two = write_skill(clash, "two", "review", "second", "")
    with pytest.raises(resources.ResourceError) as caught:
        await resources.discover_resources([clash])
    assert os.path.realpath(one) in str(caught.value)
    assert os.path.realpath(two) in str(caught.value)


@pytest.mark.lab12
@pytest.mark.lab12_1
async def test_the_catalog_is_ordered_by_logical_name_and_holds_no_skill_text(tmp_path: Path) -> None:
    """The catalog lists kinds, then logical names, the same every time, and of skills only metadata."""
    root = tmp_path / "root"
    write(root / "AGENTS.md", "RULES")
    # Folder names sort the other way round than the names in the front matter.
    for folder, name in (("a", "zeta"), ("b", "mid"), ("c", "alpha"), ("d", "Zeta"), ("e", "éclair")):
        write_skill(root, folder, name, f"about {name}", f"INACTIVE MARKER {name}\n")
    write(root / "templates" / "beta.md", "two")
    write(root / "templates" / "alpha.md", "one")
    later = tmp_path / "0-later"
    write_skill(later, "x", "beta", "about beta", "INACTIVE MARKER beta\n")

    catalog = await resources.discover_resources([root, later])
    assert [(each.kind, each.name) for each in catalog.resources] == [
        ("instructions", "AGENTS"),
        ("skill", "Zeta"),
        ("skill", "alpha"),
        ("skill", "beta"),
        ("skill", "mid"),
        ("skill", "zeta"),
        ("skill", "éclair"),
        ("template", "alpha"),
        ("template", "beta"),
    ]
    assert [*catalog.instructions, *catalog.skills, *catalog.templates] == catalog.resources
    assert await resources.discover_resources([root, later]) == catalog
    assert "INACTIVE MARKER" not in json.dumps(plain(catalog), ensure_ascii=False)
    assert not any(hasattr(skill, "body") for skill in catalog.skills)
    assert [skill.description for skill in catalog.skills[:2]] == ["about Zeta", "about alpha"]

    # The views are copies: what is done to one doesn't reach the other.
    catalog.skills[0].description = "changed"
    catalog.instructions[0].body = "changed"
    assert catalog.resources[1].description == "about Zeta"
    assert catalog.resources[0].body == "RULES"


# --- Lab 12.2 --------------------------------------------------------------------------------------------


@pytest.mark.lab12
@pytest.mark.lab12_2
async def test_activation_reads_the_body_and_leaves_the_catalog_alone(tmp_path: Path) -> None:
    """Activation reads the text anew, checks that it is still the same skill, and changes no catalog."""
    project, user = write_project(tmp_path / "project"), write_user(tmp_path / "user")
    catalog = await resources.discover_resources([project, user])
    before = plain(catalog)

    review = await resources.activate_skill(catalog, "review")
    source = os.path.realpath(project / "skills" / "review" / "SKILL.md")
    assert (review.name, review.description) == ("review", "project review")
    assert (review.source, review.root) == (source, str(Path(source).parent))
    assert review.body == "Read the diff first.\n"
    assert review.resources == []
    assert plain(catalog) == before

    # The result is the caller's own.
    review.body = review.description = "changed"
    assert plain(catalog) == before
    assert not any(hasattr(skill, "body") for skill in catalog.skills)

    # What counts is the file as it is at activation, and another name makes it another skill.
    write_skill(project, "review", "review", "project review", "Read the tests first.\n")
    assert (await resources.activate_skill(catalog, "review")).body == "Read the tests first.\n"
    write_skill(project, "review", "audit", "project review", "Read the diff first.\n")
    for name in ("review", "audit", "my-review"):
        with pytest.raises(resources.ResourceError):
            await resources.activate_skill(catalog, name)
    assert (await resources.activate_skill(catalog, "notes")).body == "NOTES BODY\n"
    assert plain(catalog) == before


@pytest.mark.lab12
@pytest.mark.lab12_2
async def test_requested_files_come_once_each_with_their_canonical_source(tmp_path: Path) -> None:
    """Each requested file comes once, in order, as requested, from where it really lies, with its text."""
    project = write_project(tmp_path / "project")
    skill = project / "skills" / "review"
    write(skill / "scripts" / "run.txt", "run")
    write(skill / "shared" / "deep" / "style.md", "style\n")
    (skill / "style").symlink_to(Path("shared", "deep"), target_is_directory=True)
    (skill / "references" / "latest.md").symlink_to("checklist.md")
    catalog = await resources.discover_resources([project])

    requests = [
        "scripts/run.txt",
        "references/checklist.md",
        "style/style.md",
        "references/checklist.md",
        "references/latest.md",
        "scripts/run.txt",
    ]
    review = await resources.activate_skill(catalog, "review", resources=requests)

    root = Path(os.path.realpath(skill))
    assert [(file.request, file.source, file.content) for file in review.resources] == [
        ("scripts/run.txt", str(root / "scripts" / "run.txt"), "run"),
        ("references/checklist.md", str(root / "references" / "checklist.md"), "tests\nsecurity\n"),
        ("style/style.md", str(root / "shared" / "deep" / "style.md"), "style\n"),
        ("references/latest.md", str(root / "references" / "checklist.md"), "tests\nsecurity\n"),
    ]
    assert review.body == "Read the diff first.\n"
    assert [file.request for file in (await resources.activate_skill(catalog, "review")).resources] == []


@pytest.mark.lab12
@pytest.mark.lab12_2
async def test_requests_that_lead_out_of_the_skill_are_refused(tmp_path: Path) -> None:
    """A request that is absolute or leads out of the skill by dots, a symlink or a like name is refused."""
    project = write_project(tmp_path / "project")
    skill = project / "skills" / "review"
    outside = write(tmp_path / "outside.md", "OUTSIDE")
    write(project / "skills" / "review-old" / "secret.md", "OLD")
    (skill / "link.md").symlink_to(outside)
    (skill / "folder").symlink_to(tmp_path, target_is_directory=True)
    (skill / "old").symlink_to(Path("..", "review-old"), target_is_directory=True)
    catalog = await resources.discover_resources([project])
    inside = os.path.realpath(skill / "references" / "checklist.md")

    refused = {
        "dots": "../../../outside.md",
        "dots behind a folder": "references/../../../AGENTS.md",
        "like name": "../review-old/secret.md",
        "absolute": str(outside),
        "absolute, though inside": inside,
        "link to a file": "link.md",
        "link to a folder": "folder/outside.md",
        "link to a like name": "old/secret.md",
        "empty": "",
        "missing": "references/missing.md",
        "folder itself": "references",
    }
    accepted = []
    for what, request in refused.items():
        try:
            await resources.activate_skill(catalog, "review", resources=["references/checklist.md", request])
        except resources.ResourceError:
            continue
        accepted.append(what)
    assert accepted == []

    # The same holds for the skill's own file, if a link takes it away after discovery.
    write_skill(tmp_path / "elsewhere", "review", "review", "project review", "ELSEWHERE")
    (skill / "SKILL.md").unlink()
    (skill / "SKILL.md").symlink_to(tmp_path / "elsewhere" / "skills" / "review" / "SKILL.md")
    with pytest.raises(resources.ResourceError):
        await resources.activate_skill(catalog, "review")
