"""Chapter 12, beyond the labs: resources as people write them, and files that mean harm."""

import asyncio
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pi_course import resources
from pi_course.messages import TextContent

pytestmark = pytest.mark.extra12

KIB = 1024


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, folders and all, byte for byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def skill_text(name: str = "review", description: str = "project review", body: str = "BODY\n") -> str:
    """The text of a plain SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


def skill_file(root: Path, folder: str = "review") -> Path:
    """Where a skill's file lies in a root."""
    return root / "skills" / folder / "SKILL.md"


async def refusal(root: Path) -> Any:
    """The ResourceError of a discovery that must fail."""
    with pytest.raises(resources.ResourceError) as caught:
        await resources.discover_resources([root])
    assert Path(caught.value.source).is_relative_to(os.path.realpath(root.parent))
    return caught.value


# --- what is there and what is not -----------------------------------------------------------------------


async def test_missing_files_and_folders_are_no_error(tmp_path: Path) -> None:
    """A root without any of the known files gives an empty catalog, and so do other files in its folders."""
    assert (await resources.discover_resources([])).resources == []
    assert (await resources.discover_resources([tmp_path])).resources == []
    (tmp_path / "skills" / "unfinished").mkdir(parents=True)
    write(tmp_path / "skills" / "README.md", "# The skills of this project\n")
    write(tmp_path / "skills" / "unfinished" / "notes.md", "later")
    write(tmp_path / "templates" / "README.txt", "not a template")
    write(tmp_path / "agents.txt", "no rules")
    catalog = await resources.discover_resources([tmp_path])
    assert catalog == resources.ResourceCatalog(resources=[], instructions=[], skills=[], templates=[])


async def test_roots_may_be_text_paths_links_and_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a root is written, all paths are canonical and absolute; a root given twice is no conflict."""
    real = tmp_path / "real folder"
    write(real / "AGENTS.md", "RULES")
    write(real / "templates" / "a.md", "A")
    write(skill_file(real), skill_text())
    (tmp_path / "link").symlink_to(real, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    expected = await resources.discover_resources([real])
    for root in (str(real), tmp_path / "link", "link", "./link/../real folder"):
        assert await resources.discover_resources([root]) == expected
    assert await resources.discover_resources([real, "link", real]) == expected
    canonical = os.path.realpath(real)
    assert [(each.root, each.source) for each in expected.resources] == [
        (canonical, f"{canonical}/AGENTS.md"),
        (f"{canonical}/skills/review", f"{canonical}/skills/review/SKILL.md"),
        (canonical, f"{canonical}/templates/a.md"),
    ]


async def test_a_bad_root_is_refused(tmp_path: Path) -> None:
    """A root that is missing or a file is an error, even behind a good one."""
    write(tmp_path / "file", "text")
    for bad in ("missing", "file", "nul\0byte"):
        with pytest.raises(resources.ResourceError) as caught:
            await resources.discover_resources([tmp_path, tmp_path / bad])
        assert bad in caught.value.source


@pytest.mark.parametrize("folder", ["skills", "templates"])
async def test_a_file_where_a_folder_should_be_is_refused(tmp_path: Path, folder: str) -> None:
    """A file named like one of the two folders is an error, not an empty folder."""
    write(tmp_path / folder, "not a folder")
    assert folder in (await refusal(tmp_path)).source


async def test_one_bad_resource_spoils_the_catalog_even_if_it_would_lose(tmp_path: Path) -> None:
    """A broken file in a later root is an error although the earlier root's resource would win."""
    write(skill_file(tmp_path / "a"), skill_text())
    write(skill_file(tmp_path / "b"), "no front matter")
    with pytest.raises(resources.ResourceError) as caught:
        await resources.discover_resources([tmp_path / "a", tmp_path / "b"])
    assert caught.value.source == os.path.realpath(skill_file(tmp_path / "b"))


async def test_names_are_told_apart_and_ordered_by_code_point(tmp_path: Path) -> None:
    """Case, composition and script make different names; the order is that of their code points."""
    names = ["review", "Review", "caf\u00e9", "cafe\u0301", "\U0001f600", "\ufb01", "评审", "a b", "a-b", "a"]
    for number, name in enumerate(names):
        write(skill_file(tmp_path, f"s{number}"), skill_text(name))
    catalog = await resources.discover_resources([tmp_path])
    assert [skill.name for skill in catalog.skills] == sorted(names)
    for name in names:
        assert (await resources.activate_skill(catalog, name)).name == name


async def test_the_catalog_s_lists_share_nothing(tmp_path: Path) -> None:
    """A change in `resources` doesn't reach the views, nor one in a view `resources`."""
    write(tmp_path / "AGENTS.md", "RULES")
    write(skill_file(tmp_path), skill_text())
    write(tmp_path / "templates" / "t.md", "T")
    catalog = await resources.discover_resources([tmp_path])
    fresh = await resources.discover_resources([tmp_path])
    for resource in catalog.resources:
        resource.name = resource.source = "changed"
    assert catalog.instructions == fresh.instructions
    assert catalog.skills == fresh.skills
    assert catalog.templates == fresh.templates
    catalog = await resources.discover_resources([tmp_path])
    for view in (catalog.instructions, catalog.skills, catalog.templates):
        view[0].name = "changed"
        view.clear()
    assert catalog.resources == fresh.resources


# --- front matter ----------------------------------------------------------------------------------------

MALFORMED = {
    "empty file": "",
    "no front matter": "# Review\n",
    "blank line first": "\n---\nname: a\ndescription: b\n---\n",
    "four dashes": "----\nname: a\ndescription: b\n----\n",
    "indented dashes": " ---\nname: a\ndescription: b\n ---\n",
    "never closed": "---\nname: a\ndescription: b\n",
    "closed by text": "---\nname: a\ndescription: b\n--- text\nBODY\n",
    "nothing inside": "---\n---\nBODY\n",
    "a list": "---\n- name\n- description\n---\n",
    "a string": "---\nname\n---\n",
    "two documents": "---\nname: a\n...\n--- {description: b}\n---\n",
    "no name": "---\ndescription: b\n---\n",
    "no description": "---\nname: a\n---\n",
    "empty name": "---\nname: ''\ndescription: b\n---\n",
    "empty description": "---\nname: a\ndescription: ''\n---\n",
    "name is null": "---\nname:\ndescription: b\n---\n",
    "name is a number": "---\nname: 12\ndescription: b\n---\n",
    "name is a date": "---\nname: 2024-01-31\ndescription: b\n---\n",
    "name is a bool": "---\nname: yes\ndescription: b\n---\n",
    "name is a list": "---\nname: [a]\ndescription: b\n---\n",
    "description is a mapping": "---\nname: a\ndescription: {b: c}\n---\n",
    "unbalanced quote": "---\nname: 'a\ndescription: b\n---\n",
    "bare colon": "---\nname: a\ndescription: use when: asked\n---\n",
    "tab for indent": "---\nname: a\ndescription: b\nmore:\n\t- c\n---\n",
    "control character": "---\nname: a\x01\ndescription: b\n---\n",
    "unknown alias": "---\nname: *a\ndescription: b\n---\n",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_front_matter_is_refused(tmp_path: Path, text: str) -> None:
    """Front matter without a name and a description, both non-empty text, is an error about its file."""
    write(skill_file(tmp_path, "good"), skill_text("good"))
    path = write(skill_file(tmp_path), text)
    assert (await refusal(tmp_path)).source == os.path.realpath(path)


HARMFUL = {
    "code": "a: !!python/object/apply:os.system ['touch PWNED']",
    "impossible date": "date: 2024-13-45",
    "impossible bool": "draft: !!bool perhaps",
    "impossible number": "n: !!int ''",
    "key that can't be one": "? [a, b]\n: c",
    "alias bomb": "\n".join(
        ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    ),
    "merge bomb": "\n".join(
        ["a0: &a0 {k: v}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 3)}]}}" for n in range(1, 8)]
    ),
    "deep nesting": "deep: " + "[" * 600 + "]" * 600,
    "alias to itself": "self: &self [*self]",
}


@pytest.mark.parametrize("extra", HARMFUL.values(), ids=HARMFUL)
async def test_harmful_front_matter_is_read_or_refused_and_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    """Odd values under other keys are ignored or refused as ResourceError; nothing of them ever runs."""
    monkeypatch.chdir(tmp_path)
    write(skill_file(tmp_path), f"---\nname: review\ndescription: project review\n{extra}\n---\nBODY\n")
    try:
        found = (await resources.discover_resources([tmp_path])).skills
    except resources.ResourceError:
        found = []
    assert [(skill.name, skill.description) for skill in found] in ([], [("review", "project review")])
    assert not (tmp_path / "PWNED").exists()


FOLDED = """---
name: "code-review"   # quoted, with a comment
description: >
  Reviews a diff the way a careful
  colleague would.

  Use it before merging: it reads tests first.
license: MIT
allowed-tools: [read, grep, "bash(git diff:*)"]
metadata:
  author: someone
  version: "1.2"
  updated: 2024-01-31
keywords:
  - review
  - 评审
---

# Code review

---

A rule above, which closes nothing.
"""

LITERAL = """---
description: |-
  First line.
    Second line, indented.
name: 'it''s fine'
---
Body without a line end"""


async def test_front_matter_as_people_write_it(tmp_path: Path) -> None:
    """Folded, literal and quoted text, comments, further keys, lists and anchors are all read."""
    write(skill_file(tmp_path, "folded"), FOLDED)
    write(skill_file(tmp_path, "literal"), LITERAL)
    write(skill_file(tmp_path, "spaces"), "---  \t\nname: spaces\ndescription: d\n--- \nBODY\n")
    write(skill_file(tmp_path, "closed at the end"), "---\nname: no body\ndescription: d\n---")
    write(skill_file(tmp_path, "anchor"), "---\nname: &n anchor\ndescription: d\nalso: *n\n---\n\n\nBODY\n\n")
    write(skill_file(tmp_path, "dashes"), "---\ndescription: |\n  a\n  ---\n  b\nname: dashes\n---\nBODY\n")
    catalog = await resources.discover_resources([tmp_path])
    assert {skill.name: skill.description for skill in catalog.skills} == {
        "code-review": "Reviews a diff the way a careful colleague would.\n"
        "Use it before merging: it reads tests first.\n",
        "it's fine": "First line.\n  Second line, indented.",
        "spaces": "d",
        "no body": "d",
        "anchor": "d",
        "dashes": "a\n---\nb\n",
    }
    active = [await resources.activate_skill(catalog, skill.name) for skill in catalog.skills]
    assert {skill.name: skill.body for skill in active} == {
        "code-review": "\n# Code review\n\n---\n\nA rule above, which closes nothing.\n",
        "it's fine": "Body without a line end",
        "spaces": "BODY\n",
        "no body": "",
        "anchor": "\n\nBODY\n\n",
        "dashes": "BODY\n",
    }
    assert resources.format_resource_context(catalog, []).startswith(
        "# Pi resources\n\nanchor: d\n\ncode-review: Reviews a diff the way a careful colleague would.\n"
        "Use it before merging: it reads tests first.\n\ndashes: a\n---\nb\n\n"
    )


async def test_templates_may_have_front_matter(tmp_path: Path) -> None:
    """A template's front matter gives its description and isn't part of its body; without it all is body."""
    texts = {
        "plain": "Review {{target}}\n",
        "described": "---\ndescription: For a review\nname: other\n---\nReview {{target}}\n",
        "undescribed": "---\nauthor: someone\n---\nReview",
        "empty-front": "---\n---\nReview",
        "rule-first": "---\nReview {{target}}, and no front matter\n",
        "dots.in.name": "x",
        "empty": "",
    }
    for name, text in texts.items():
        write(tmp_path / "templates" / f"{name}.md", text)
    write(tmp_path / "templates" / "deeper" / "ignored.md", "x")
    catalog = await resources.discover_resources([tmp_path])
    assert {each.name: (each.description, each.body) for each in catalog.templates} == {
        "plain": ("", "Review {{target}}\n"),
        "described": ("For a review", "Review {{target}}\n"),
        "undescribed": ("", "Review"),
        "empty-front": ("", "Review"),
        "rule-first": ("", "---\nReview {{target}}, and no front matter\n"),
        "dots.in.name": ("", "x"),
        "empty": ("", ""),
    }


@pytest.mark.parametrize("front", ["description: [a]", "description: 12", "- a", "text", "a: b: c", "a: 'b"])
async def test_a_template_s_malformed_front_matter_is_refused(tmp_path: Path, front: str) -> None:
    """Closed front matter that is no mapping, or whose description is no text, is an error."""
    path = write(tmp_path / "templates" / "t.md", f"---\n{front}\n---\nBODY\n")
    assert (await refusal(tmp_path)).source == os.path.realpath(path)


async def test_unclosed_dashes_in_the_rules_are_text(tmp_path: Path) -> None:
    """A first line of dashes that is never closed makes no front matter of AGENTS.md."""
    write(tmp_path / "AGENTS.md", "---\nRULES\n")
    catalog = await resources.discover_resources([tmp_path])
    assert [each.body for each in catalog.instructions] == ["---\nRULES\n"]


# --- text and sizes --------------------------------------------------------------------------------------


async def test_byte_order_marks_go_and_line_ends_become_one(tmp_path: Path) -> None:
    """In every file the BOM goes and CRLF becomes LF; no other character is changed or stripped."""
    kept = " \u2028 \x0c \r kept \ufeff\t\n\n  é 评审 \n "
    odd = b"\xef\xbb\xbf" + kept.replace("\n", "\r\n").encode()
    write(tmp_path / "AGENTS.md", odd)
    write(tmp_path / "templates" / "plain.md", odd)
    write(tmp_path / "templates" / "front.md", b"\xef\xbb\xbf---\r\ndescription: d\r\n---\r\n" + odd[3:])
    write(skill_file(tmp_path), b"\xef\xbb\xbf---\r\nname: review\r\ndescription: d\r\n---\r\n" + odd[3:])
    write(tmp_path / "skills" / "review" / "file.md", odd)
    catalog = await resources.discover_resources([tmp_path])
    assert [(skill.name, skill.description) for skill in catalog.skills] == [("review", "d")]
    assert catalog.instructions[0].body == kept
    assert [(each.description, each.body) for each in catalog.templates] == [("d", kept), ("", kept)]
    review = await resources.activate_skill(catalog, "review", resources=["file.md"])
    assert (review.body, review.resources[0].content) == (kept, kept)


BAD_UTF_8 = {
    "AGENTS.md": b"caf\xe9\n",
    "templates/t.md": b"---\ndescription: d\n---\ncaf\xe9\n",
    "templates/front.md": b"---\ndescription: caf\xe9\n---\n",
    "skills/review/SKILL.md": b"---\nname: caf\xe9\ndescription: d\n---\n",
}


@pytest.mark.parametrize("where", BAD_UTF_8)
async def test_bad_utf_8_is_refused(tmp_path: Path, where: str) -> None:
    """A file that is no UTF-8 is an error about that file."""
    path = write(tmp_path / where, BAD_UTF_8[where])
    assert (await refusal(tmp_path)).source == os.path.realpath(path)


async def test_what_is_wrong_behind_the_front_matter_shows_at_activation(tmp_path: Path) -> None:
    """Discovery looks at the front matter only: a broken body is found when the skill is activated."""
    write(skill_file(tmp_path), skill_text().encode() + b"caf\xe9\n")
    catalog = await resources.discover_resources([tmp_path])
    assert [skill.name for skill in catalog.skills] == ["review"]
    with pytest.raises(resources.ResourceError) as caught:
        await resources.activate_skill(catalog, "review")
    assert caught.value.source == os.path.realpath(skill_file(tmp_path))


@pytest.mark.parametrize("start", [64 * KIB - 3, 64 * KIB - 2, 64 * KIB - 1])
async def test_a_character_across_the_limit_is_no_error(tmp_path: Path, start: int) -> None:
    """A body's character that begins before the limit of the prefix and ends behind it is just text."""
    head = skill_text(body="").encode()
    write(skill_file(tmp_path), head + b"x" * (start - len(head)) + "😀 end".encode())
    catalog = await resources.discover_resources([tmp_path])
    assert (await resources.activate_skill(catalog, "review")).body.endswith("x😀 end")


async def test_front_matter_has_at_most_64_kib(tmp_path: Path) -> None:
    """Front matter up to the limit is read, at discovery and activation; longer ones are refused."""

    def text(size: int) -> str:
        head, tail = "---\nname: review\ndescription: d\npad: ", "\n---\n"
        return head + "x" * (size - len(head) - len(tail)) + tail + "BODY\n"

    write(skill_file(tmp_path), text(64 * KIB))
    catalog = await resources.discover_resources([tmp_path])
    assert (await resources.activate_skill(catalog, "review")).body == "BODY\n"
    write(skill_file(tmp_path), text(64 * KIB + len("\n")).removesuffix("\nBODY\n"))
    assert skill_file(tmp_path).stat().st_size == 64 * KIB
    assert (await resources.discover_resources([tmp_path])).skills == catalog.skills
    for size in (64 * KIB + 16, 70 * KIB, 1024 * KIB):
        write(skill_file(tmp_path), text(size))
        assert (await refusal(tmp_path)).source == os.path.realpath(skill_file(tmp_path))
        with pytest.raises(resources.ResourceError):
            await resources.activate_skill(catalog, "review")
    write(skill_file(tmp_path), skill_text())
    write(tmp_path / "templates" / "t.md", text(70 * KIB))
    await refusal(tmp_path)


async def test_discovery_s_memory_does_not_grow_with_bodies(tmp_path: Path) -> None:
    """Skills with bodies of 64 MiB are found in a small part of that memory."""
    for number in range(3):
        with write(skill_file(tmp_path, f"s{number}"), skill_text(f"s{number}")).open("r+b") as file:
            file.truncate(64 * KIB * KIB)
    await resources.discover_resources([tmp_path])
    tracemalloc.start()
    try:
        catalog = await resources.discover_resources([tmp_path])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(catalog.skills) == 3
    assert peak < 4 * KIB * KIB


# --- links and containment -------------------------------------------------------------------------------


async def test_links_inside_a_root_are_followed(tmp_path: Path) -> None:
    """Links that stay inside the root, or a SKILL.md's inside its folder, work, with canonical sources."""
    root = tmp_path / "root"
    shared = root / "shared"
    write(shared / "rules.md", "RULES")
    write(shared / "templates" / "t.md", "T")
    write(shared / "review" / "text" / "skill.md", skill_text())
    (shared / "review" / "SKILL.md").symlink_to(Path("text", "skill.md"))
    (root / "AGENTS.md").symlink_to(Path("shared", "rules.md"))
    (root / "templates").symlink_to(Path("shared", "templates"), target_is_directory=True)
    (root / "skills").mkdir()
    (root / "skills" / "linked").symlink_to(Path("..", "shared", "review"), target_is_directory=True)
    catalog = await resources.discover_resources([root])
    real = os.path.realpath(root)
    assert [(each.name, each.source, each.root) for each in catalog.resources] == [
        ("AGENTS", f"{real}/shared/rules.md", real),
        ("review", f"{real}/shared/review/text/skill.md", f"{real}/shared/review"),
        ("t", f"{real}/shared/templates/t.md", real),
    ]
    assert (await resources.activate_skill(catalog, "review")).body == "BODY\n"


@pytest.mark.parametrize("where", ["AGENTS.md", "templates/t.md", "skills/review/SKILL.md"])
async def test_links_that_lead_out_are_refused(tmp_path: Path, where: str) -> None:
    """A link that takes rules or a template out of the root, or a SKILL.md out of its folder, is an error."""
    root = tmp_path / "root"
    outside = write(tmp_path / "root-old" / "file.md", skill_text())
    (root / where).parent.mkdir(parents=True)
    (root / where).symlink_to(outside)
    await refusal(root)
    if where.endswith("SKILL.md"):  # the folder is the limit, not the root
        (root / where).unlink()
        write(root / "skills" / "SKILL.md", skill_text())
        (root / where).symlink_to(Path("..", "SKILL.md"))
        await refusal(root)


@pytest.mark.parametrize("where", ["AGENTS.md", "skills/review/SKILL.md"])
async def test_a_folder_or_a_loop_instead_of_a_file_is_refused(tmp_path: Path, where: str) -> None:
    """A folder or a link to itself in a file's place is an error, whatever the system says of it."""
    (tmp_path / where).mkdir(parents=True)
    await refusal(tmp_path)
    (tmp_path / where).rmdir()
    (tmp_path / where).symlink_to(tmp_path / where)
    await refusal(tmp_path)


@contextmanager
def released_after(path: Path, seconds: float) -> Iterator[None]:
    """Open a pipe's other end after a while, so that whoever waits for it at least comes back."""
    timer = threading.Timer(seconds, lambda: os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK)))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("where", ["AGENTS.md", "templates/t.md", "skills/review/SKILL.md"])
async def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, where: str) -> None:
    """A named pipe in a file's place is an error at once, at discovery and as a requested file."""
    root, other = tmp_path / "root", tmp_path / "other"
    (root / where).parent.mkdir(parents=True)
    os.mkfifo(root / where)
    with released_after(root / where, 5):
        await refusal(root)
    write(skill_file(other), skill_text())
    os.mkfifo(other / "skills" / "review" / "pipe")
    catalog = await resources.discover_resources([other])
    with (
        released_after(other / "skills" / "review" / "pipe", 5),
        pytest.raises(resources.ResourceError),
    ):
        await resources.activate_skill(catalog, "review", resources=["pipe"])


async def test_a_skill_that_changed_since_discovery_is_refused(tmp_path: Path) -> None:
    """A skill whose file is gone, broken or no longer a file at activation is an error, not old text."""
    path = write(skill_file(tmp_path), skill_text())
    catalog = await resources.discover_resources([tmp_path])
    for text in ("no front matter", "---\nname: review\n---\n", "---\nname: Review\ndescription: d\n---\n"):
        write(path, text)
        with pytest.raises(resources.ResourceError) as caught:
            await resources.activate_skill(catalog, "review")
        assert "review" in caught.value.source
    path.unlink()
    for make in (lambda: None, path.mkdir):
        make()
        with pytest.raises(resources.ResourceError) as caught:
            await resources.activate_skill(catalog, "review")
        assert "review" in caught.value.source


async def test_the_error_tells_the_request(tmp_path: Path) -> None:
    """What is wrong with a request or a name is told with it."""
    write(skill_file(tmp_path), skill_text())
    write(tmp_path / "skills" / "review" / "bad.md", b"caf\xe9")
    catalog = await resources.discover_resources([tmp_path])
    refused = ["../outside.md", "missing.md", "bad.md", "nul\0byte", "/absolute.md", "SKILL.md/more"]
    for request in [*refused, "x" * 5000]:
        with pytest.raises(resources.ResourceError) as caught:
            await resources.activate_skill(catalog, "review", resources=["SKILL.md", request])
        assert Path(request).name in caught.value.source
    for request in ("", ".", "./", "references/.."):
        with pytest.raises(resources.ResourceError):
            await resources.activate_skill(catalog, "review", resources=[request])
    with pytest.raises(resources.ResourceError) as caught:
        await resources.activate_skill(catalog, "unknown")
    assert caught.value.source == "unknown"


_opened: list[str] | None = None


def _note_opened(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(args[0], str | bytes | os.PathLike):
        _opened.append(os.fsdecode(args[0]))


@pytest.fixture(scope="module", autouse=True)
def _watching_opens() -> None:
    sys.addaudithook(_note_opened)  # for good: there is no way to take one away


async def test_nothing_outside_the_skill_is_opened(tmp_path: Path) -> None:
    """A refused request is refused before a file outside the skill is opened."""
    global _opened
    outside = write(tmp_path / "outside.md", "OUTSIDE")
    write(tmp_path / "skills" / "review-old" / "old.md", "OLD")
    write(skill_file(tmp_path), skill_text())
    skill = tmp_path / "skills" / "review"
    (skill / "link.md").symlink_to(outside)
    (skill / "up").symlink_to(tmp_path, target_is_directory=True)
    catalog = await resources.discover_resources([tmp_path])
    requests = ("../../outside.md", "../review-old/old.md", str(outside), "link.md", "up/outside.md")
    _opened = []
    try:
        for request in requests:
            with pytest.raises(resources.ResourceError):
                await resources.activate_skill(catalog, "review", resources=[request])
        opened = [Path(os.path.realpath(path)) for path in _opened]
    finally:
        _opened = None
    inside = os.path.realpath(skill)
    assert [path for path in opened if path.name.endswith(".md") and not path.is_relative_to(inside)] == []


@pytest.fixture(scope="module")
def crossroads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A skill full of folders and links, beside files that are none of its business."""
    top = Path(os.path.realpath(tmp_path_factory.mktemp("crossroads")))
    skill = top / "skills" / "review"
    write(skill / "SKILL.md", skill_text())
    for path in ("a/b/f", "a/f", "f"):
        write(skill / path, f"INSIDE {path}")
    for path in (top / "f", top / "skills" / "f", top / "skills" / "review-old" / "f", top / "a" / "b" / "f"):
        write(path, f"OUTSIDE {path}")
    (skill / "a" / "up").symlink_to("..", target_is_directory=True)
    (skill / "a" / "out").symlink_to(Path("..", ".."), target_is_directory=True)
    (skill / "in").symlink_to(Path("a", "b"), target_is_directory=True)
    (skill / "abs").symlink_to(top, target_is_directory=True)
    (skill / "loop").symlink_to("loop")
    return top


SEGMENTS = [
    "a",
    "b",
    "f",
    "..",
    ".",
    "",
    "up",
    "out",
    "in",
    "abs",
    "loop",
    "review",
    "review-old",
    "skills",
    "x",
]


@settings(max_examples=150, deadline=None, database=None)
@given(
    segments=st.lists(st.sampled_from(SEGMENTS), max_size=6), lead=st.sampled_from(["", "", "", "/", "~/"])
)
def test_no_request_ever_brings_text_from_outside(crossroads: Path, segments: list[str], lead: str) -> None:
    """Whatever path is asked for: it is refused, or it is the text of a regular file inside the skill."""
    request = lead + "/".join(segments)
    root = crossroads / "skills" / "review"

    async def ask() -> Any:
        catalog = await resources.discover_resources([crossroads])
        try:
            return (await resources.activate_skill(catalog, "review", resources=[request])).resources[0]
        except resources.ResourceError:
            return None

    file = asyncio.run(ask())
    plain = bool(segments) and not lead and set(segments) <= {"a", "b", "f", "in"}
    if file is None:
        assert not (plain and (root / request).is_file())
        return
    assert file.request == request
    assert file.source == os.path.realpath(file.source)
    assert Path(file.source).is_relative_to(root)
    assert file.content.startswith("INSIDE")
    assert file.content == Path(file.source).read_text()


# --- templates and the system prompt ---------------------------------------------------------------------


def expected_text(body: str, args: dict[str, str]) -> str | None:
    """What a template becomes, found without regular expressions; None if an argument is missing."""
    text, rest = "", body
    while rest:
        name, closed, tail = rest[2:].partition("}}") if rest.startswith("{{") else ("", "", "")
        if closed and name.isascii() and name.isidentifier():
            if name not in args:
                return None
            text, rest = text + args[name], tail
        else:
            text, rest = text + rest[0], rest[1:]
    return text


PIECES = ["{{a}}", "{{b_1}}", "{{", "}}", "{", "}", "a", "b_1", " ", "\n", "\\1", "{{é}}", "{{ a }}", "1"]


@settings(max_examples=150, deadline=None, database=None)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=12),
    value=st.text(alphabet="ab_1{}\\ é", max_size=5)
    | st.sampled_from(["{{a}}", "{{b_1}}", "\\1", "\\g<0>", "{{", "}}", ""]),
)
def test_templates_replace_places_and_nothing_else(pieces: list[str], value: str) -> None:
    """For any text and values the result is the text with each place replaced once."""
    body, args = "".join(pieces), {"a": value, "b_1": "two"}
    template = resources.TemplateResource("t", "/t.md", "/", body)
    expected = expected_text(body, args)
    if expected is None:
        with pytest.raises(resources.ResourceError):
            resources.render_template(template, args)
    else:
        assert resources.render_template(template, args).content == [TextContent(expected)]
    assert template.body == body


def test_a_missing_argument_is_never_made_up() -> None:
    """Arguments are those that are there: a mapping's default for missing keys isn't asked."""

    class Generous(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return "made up"

    template = resources.TemplateResource("t", "/t.md", "/", "{{known}} {{unknown}}")
    with pytest.raises(resources.ResourceError, match="unknown"):
        resources.render_template(template, Generous(known="x"))


def catalog_of(*skills: Any, rules: str | None = None) -> Any:
    """A catalog made by hand."""
    rule = [] if rules is None else [resources.InstructionsResource("AGENTS", "/AGENTS.md", "/", rules)]
    return resources.ResourceCatalog([*rule, *skills], rule, list(skills), [])


def test_sections_lose_newlines_at_their_ends_only() -> None:
    """One blank line stands between sections; spaces, tabs and blank lines inside them stay."""
    skill = resources.SkillResource("s", "one\ntwo\n", "/s/SKILL.md", "/s")
    catalog = catalog_of(skill, rules="\n\n  indented\n\n\ninner \n\n")
    files = [resources.SkillFile("a", "/s/a", "\n\tA \n"), resources.SkillFile("b", "/s/b", "B")]
    active = resources.ActivatedSkill("s", "one\ntwo\n", "/s/SKILL.md", "/s", "\n body X\n", files)
    assert resources.format_resource_context(catalog, [active]) == (
        "# Pi resources\n\n  indented\n\n\ninner \n\ns: one\ntwo\n\n body X\n\n\tA \n\nB"
    )
    assert resources.format_resource_context(catalog_of(rules="R"), []) == "# Pi resources\n\nR"
    assert resources.format_resource_context(catalog_of(skill), []) == "# Pi resources\n\ns: one\ntwo"


def test_only_this_catalog_s_skills_are_formatted() -> None:
    """Name and source must both be the catalog's, and each skill may come once."""
    skill = resources.SkillResource("s", "d", "/s/SKILL.md", "/s")
    catalog = catalog_of(skill)
    good = resources.ActivatedSkill("s", "d", "/s/SKILL.md", "/s", "BODY", [])
    assert resources.format_resource_context(catalog, (good,)).endswith("\n\nBODY")
    renamed = resources.ActivatedSkill("t", "d", "/s/SKILL.md", "/s", "BODY", [])
    moved = resources.ActivatedSkill("s", "d", "/t/SKILL.md", "/s", "BODY", [])
    for wrong in ([renamed], [moved], [good, moved], [good, good], [good, renamed]):
        with pytest.raises(resources.ResourceError):
            resources.format_resource_context(catalog, wrong)
    with pytest.raises(resources.ResourceError):
        resources.format_resource_context(catalog_of(), [good])


async def test_a_large_context_is_not_trimmed(tmp_path: Path) -> None:
    """The system prompt holds all of it; the budget is chapter 11's."""
    write(tmp_path / "AGENTS.md", "rule\n" * 50_000)
    catalog = await resources.discover_resources([tmp_path])
    assert len(resources.format_resource_context(catalog, [])) == len("# Pi resources\n\n") + 5 * 50_000 - 1


def test_refusals_without_a_file_of_their_own_say_what_they_are_about() -> None:
    """A missing argument and a foreign skill are told with a source, as every refusal is."""
    template = resources.TemplateResource("greet", "/made/up/greet.md", "/made/up", "Hello {{who}}")
    with pytest.raises(resources.ResourceError) as missing:
        resources.render_template(template, {})
    stranger = resources.ActivatedSkill("x", "a skill", "/made/up/SKILL.md", "/made/up", "text", [])
    with pytest.raises(resources.ResourceError) as foreign:
        resources.format_resource_context(resources.ResourceCatalog([], [], [], []), [stranger])
    for caught in (missing, foreign):
        assert isinstance(caught.value.source, str)
        assert caught.value.source
