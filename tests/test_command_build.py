"""`course build`: wheels of a course, and what a learner's edition does and refuses."""

from __future__ import annotations

import io
import marshal
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest

from course.catalog import load_course
from course.cli import run as run_command
from course.trees import solution_tree, write_tree
from course.verify.search import Search

Program = Callable[..., Any]
INDEX = "src/findex/index.py"
WORDS = "src/findex/words_03.py"


@pytest.fixture(scope="module")
def quick_cache(shared_cache: Path) -> Iterator[None]:
    """Have what the module makes once use the cache that its tests use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_CACHE_DIR", str(shared_cache))
        yield


@pytest.fixture(scope="module")
def grown(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory, quick_cache: None) -> Path:
    """The tiny course with a chapter 03 that grows no file of an earlier one, pinned."""
    folder = shutil.copytree(tiny_folder, tmp_path_factory.mktemp("grown") / "tiny")
    assert run_command(["--course", str(folder), "new", "--chapter", "03"]) == 0
    return folder


@pytest.fixture(scope="module")
def editions(grown: Path, tmp_path_factory: pytest.TempPathFactory, quick_cache: None) -> dict[str, Path]:
    """The course's folder out of each wheel: for everybody, without answers, and for chapter 02."""
    out = tmp_path_factory.mktemp("editions")
    asked = {"whole": ["--instructor"], "01": ["--learner"], "02": ["--learner", "--chapter", "2"]}
    found = {}
    for name, options in asked.items():
        assert run_command(["--course", str(grown), "build", *options, "--out", str(out / name)]) == 0
        (wheel,) = (out / name).iterdir()
        zipfile.ZipFile(wheel).extractall(out / name / "site")
        found[name] = out / name / "site" / "course_tiny"
    return found


def search(grown: Path, *chapters: str) -> Search:
    course = load_course(grown)
    return Search(course, [course.chapter(one) for one in chapters])


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_instructors_wheel_is_the_whole_course(editions: dict[str, Path], grown: Path) -> None:
    """Every file of the course's folders is in it, and nothing of the tests around them."""
    tops = ("checkpoints", "labs", "starters", "solutions")
    whole = {name for name in files(grown) if name.split("/")[0] in tops}
    assert files(editions["whole"]) == whole
    assert list(search(grown, "01", "02", "03").in_folder(editions["whole"]))


def test_learners_wheel_holds_no_answer(editions: dict[str, Path], grown: Path) -> None:
    """No solution, stage, patch, or starter that grows out of an answer; the search over all of it finds none."""
    edition = editions["01"]
    left_out = files(editions["whole"]) - files(edition)
    assert left_out == {
        name
        for name in files(editions["whole"])
        if name.startswith(("solutions/", "starters/02/")) or name.endswith(".patch")
    }
    assert (edition / "checkpoints" / "edition.toml").read_text("utf-8").splitlines()[1:] == [
        'hides = "01"',
        'withheld = ["02"]',
    ]
    assert list(search(grown, "01", "02", "03").in_folder(edition.parent)) == []
    (info,) = edition.parent.glob("*.dist-info")
    assert info.name == "tiny_course-1.0+learner01.dist-info"


def test_edition_of_a_later_chapter_gives_what_comes_before(editions: dict[str, Path], grown: Path) -> None:
    """A class that starts at chapter 02 has chapter 01 whole, and no answer from 02 on."""
    edition = editions["02"]
    assert (edition / "solutions" / "01" / INDEX).is_file()
    assert (edition / "labs" / "01" / "faults" / "01.2-any-word.patch").is_file()
    assert not (edition / "solutions" / "02").exists()
    assert list(search(grown, "02", "03").in_folder(edition)) == []


def _zipped(name: str, data: bytes) -> bytes:
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return text.getvalue()


HIDING_PLACES: dict[str, Callable[[Path, bytes], None]] = {
    "source": lambda folder, data: (folder / "a.py").write_bytes(data),
    "text": lambda folder, data: (folder / "notes.txt").write_bytes(data),
    "bytecode": lambda folder, data: (folder / "a.pyc").write_bytes(
        b"\0" * 16 + marshal.dumps(compile(data, "elsewhere.py", "exec"))
    ),
    "archive in an archive": lambda folder, data: (folder / "a.zip").write_bytes(
        _zipped("b.whl", _zipped("c.py", data))
    ),
    "object that no commit reaches": lambda folder, data: _loose_object(folder, data),
}


def _loose_object(folder: Path, data: bytes) -> None:
    from course.git import Git

    Git(folder).run("init", "--quiet", "--template=", "r")
    whole = b"blob %d\0" % len(data) + data
    name = sha1(whole, usedforsecurity=False).hexdigest()
    file = folder / "r" / ".git" / "objects" / name[:2] / name[2:]
    file.parent.mkdir()
    file.write_bytes(zlib.compress(whole))


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_search_finds_an_answer_wherever_it_lies(place: str, grown: Path, tmp_path: Path) -> None:
    """Sources, texts, bytecode, archives and stray git objects: a solution in any of them is found."""
    data = (grown / "solutions" / "01" / INDEX).read_bytes()
    HIDING_PLACES[place](tmp_path, data)
    found = list(search(grown, "01").in_folder(tmp_path))
    assert found
    assert "answer line" in found[0] or "body of" in found[0]
    shutil.copyfile(grown / "starters" / "01" / INDEX, tmp_path / "starter.py")
    assert not [one for one in search(grown, "01").in_folder(tmp_path) if one.startswith("starter.py")]


def test_edition_that_would_leak_is_not_built(tiny: Path, call: Program, tmp_path: Path) -> None:
    """A portable fault that repeats the reference is told, status 1, and no wheel is there."""
    fault = tiny / "labs" / "01" / "faults" / "01.2-any-word.py"
    fault.write_text(
        fault.read_text("utf-8") + "\n\ndef f(text):\n    return _WORD.findall(text.casefold())\n"
    )
    assert call("--course", tiny, "pin").status == 0
    ran = call("--course", tiny, "build", "--learner", "--out", tmp_path / "out")
    assert ran.status == 1
    assert ran.told[0] == (
        "course: No wheel was made, it would give answers away: course_tiny/labs/01/faults/01.2-any-word.py "
        "holds an answer line: return _WORD.findall(text.casefold())."
    )
    assert list((tmp_path / "out").iterdir()) == []


def _unpinned(folder: Path) -> None:
    (folder / "checkpoints" / "history.toml").unlink(missing_ok=True)


BAD: dict[str, tuple[list[str], Callable[[Path], object], int, str]] = {
    "no edition": ([], lambda f: None, 2, "Which edition?"),
    "chapter of the whole": (
        ["--instructor", "--chapter", "01"],
        lambda f: None,
        2,
        "--chapter is for a learner's edition.",
    ),
    "no such chapter": (["--learner", "--chapter", "09"], lambda f: None, 2, "This course has no chapter 09."),
    "foundation": (["--learner", "--chapter", "00"], lambda f: None, 2, "Chapter 00 is part of the foundation"),
    "no pyproject": (["--instructor"], lambda f: (f / "pyproject.toml").unlink(), 2, "has no pyproject.toml"),
    "no backend named": (
        ["--instructor"],
        lambda f: (f / "pyproject.toml").write_text("[project]\n"),
        3,
        "names no build backend",
    ),
    "backend missing": (
        ["--instructor"],
        lambda f: (f / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["nowhere>=1"]\nbuild-backend = "nowhere.api"\n'
        ),
        3,
        "nowhere is not installed",
    ),
    "backend fails": (
        ["--instructor"],
        lambda f: (f / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "hatchling.build"\n[project]\nname = 1\n'
        ),
        3,
        "hatchling.build can't build the wheel",
    ),
    "not pinned": (["--learner"], _unpinned, 2, "The contents are not what is pinned"),
    "out is a file": (["--instructor"], lambda f: (f / "out").write_text(""), 2, "out is not a directory"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case: str, grown: Path, call: Program, tmp_path: Path) -> None:
    """What can't be built is told with what to do next, and leaves nothing behind."""
    options, spoil, status, told = BAD[case]
    folder = shutil.copytree(grown, tmp_path / "tiny")
    spoil(folder)
    before = files(folder)
    ran = call("--course", folder, "build", *options, "--out", "out", cwd=folder)
    assert ran.status == status, ran.err
    assert told in ran.told[0]
    assert len(ran.told) == 2
    assert files(folder) == before


NEED_THE_REFERENCE = [
    ["diff", "01", "--yes"],
    ["checkpoint", "01", "--export", "there"],
    ["drill", "01"],
    ["transfer", "02", "test_mine.py"],
    ["quiz", "01", "--answers"],
    ["demo", "02"],
]
NEED_THE_WHOLE = [["verify"], ["pin"], ["build", "--learner"], ["new", "--chapter", "04"]]


@pytest.mark.parametrize("words", [*NEED_THE_REFERENCE, *NEED_THE_WHOLE], ids=lambda words: words[0])
def test_command_that_needs_answers_says_so(
    words: list[str], editions: dict[str, Path], call: Program, tmp_path: Path
) -> None:
    """In a learner's edition it is one sentence and what to do, status 2."""
    (tmp_path / "test_mine.py").write_text("", "utf-8")
    ran = call("--course", editions["01"], *words, cwd=tmp_path)
    assert ran.status == 2, ran.err
    assert ran.told[0].startswith("course: This is a learner's edition")
    assert len(ran.told) == 2
    assert not (tmp_path / "there").exists()


def test_learner_goes_through_a_chapter(
    editions: dict[str, Path], grown: Path, call: Program, tmp_path: Path, git: Program
) -> None:
    """Practice, check, hint, handout, quiz, drill, record, reset and doctor work without any reference."""
    edition, practice = editions["01"], tmp_path / "mywork"
    made = call("--course", edition, "practice", "01", practice, "--json")
    whole = call("--course", grown, "practice", "01", tmp_path / "other", "--json")
    assert made.status == 0, made.err
    assert made.document["start"] == whole.document["start"]
    assert list(search(grown, "01", "02", "03").in_folder(practice)) == []
    listed = call("--course", edition, "list", "--json", cwd=practice)
    assert [chapter["id"] for chapter in listed.document["chapters"]] == ["00", "01", "02", "03"]
    shown = call("checkpoint", "02", "--json", cwd=practice)
    pins = call("--course", grown, "checkpoint", "02", "--json")
    assert shown.document["target"] == pins.document["target"]
    assert call("check", cwd=practice).status == 1
    assert call("hint", "01.1", cwd=practice).status == 0
    assert call("handout", cwd=practice).status == 0
    shutil.copyfile(grown / "solutions" / "01" / INDEX, practice / INDEX)
    answers = call("quiz", "--answers", "--json", cwd=practice).document["questions"]
    assert [one["shown"] for one in answers] == [True, True]
    drilled = call("drill", cwd=practice)
    assert drilled.status == 0, drilled.err
    assert "not for your code, an edit of the reference: 01.1-lower-only" in drilled.out
    assert drilled.out.endswith("3 caught, 0 escaped, 0 broken\n")
    assert "what " in call("drill", "--show", "01.1-lower-only", cwd=practice).out
    recorded = call("record", cwd=practice)
    assert recorded.out.count("missing") == 2, recorded.out
    assert call("reset", "--yes", cwd=practice).status == 0
    doctor = call("doctor", cwd=practice)
    assert "a learner's edition without answers from chapter 01 on" in doctor.out


def test_chapter_that_grows_a_hidden_file_is_not_begun(
    editions: dict[str, Path], call: Program, tmp_path: Path
) -> None:
    """Its starter holds the answers of the chapter before; the edition that has it is named."""
    ran = call("--course", editions["01"], "practice", "02", tmp_path / "w")
    assert ran.status == 2
    assert ran.told == [
        "course: Chapter 02 grows files whose answers this learner's edition leaves out.",
        "Whoever teaches makes one for it: `course build --learner --chapter 02`.",
    ]
    made = call("--course", editions["02"], "practice", "02", tmp_path / "w")
    assert made.status == 0, made.err


def test_own_code_is_carried_where_no_reference_is(
    editions: dict[str, Path], grown: Path, call: Program, tmp_path: Path, git: Program
) -> None:
    """Without --from the sentence names it; red code is refused; green code is the parent, whatever was edited."""
    edition, first, second = editions["02"], tmp_path / "first", tmp_path / "~second one"
    assert call("--course", edition, "practice", "02", first).status == 0
    alone = call("--course", edition, "practice", "03", second)
    assert alone.status == 2
    assert "without the reference that chapter 03 starts from" in alone.told[0]
    assert "--from PRACTICE" in alone.told[1]
    red = call("--course", edition, "practice", "03", second, "--from", first)
    assert (red.status, second.exists()) == (1, False)
    own = (grown / "solutions" / "02" / INDEX).read_text("utf-8") + "\n# my own\n"
    (first / INDEX).write_text(own, "utf-8")
    (first / "tests" / "test_02_search.py").write_text("", "utf-8")
    made = call("--course", edition, "practice", "03", second, "--from", first)
    assert made.status == 0, made.err
    assert git(second, "log", "--format=%s") == [
        "Chapter 03 starter",
        "Chapter 02, your own",
        "Chapter 01: Words and documents",
        "Chapter 00: Workspace",
    ]
    assert (second / INDEX).read_text("utf-8") == own
    assert (second / "tests" / "test_02_search.py").stat().st_size > 0
    assert list(search(grown, "03").in_folder(second)) == []
    assert "Lab 03.1 0/1 · first red" in call("check", cwd=second).out
    write_tree(solution_tree(load_course(grown).chapter("03")), second)
    assert call("check", cwd=second).status == 0
    recorded = call("record", cwd=second)
    assert recorded.out.count("missing") == 2, recorded.out
    assert call("reset", "--yes", WORDS, cwd=second).status == 0
    assert "not written yet" in (second / WORDS).read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('format = 1\nhides = "09"\n', "`hides`: expected a chapter of course.toml, got '09'"),
        (
            'format = 1\nhides = "01"\nwithheld = ["x"]\n',
            "`withheld[0]`: expected a chapter of course.toml, got 'x'",
        ),
        ("format = 1\n", "`hides`: expected, it is missing"),
        ("format = 2\n", "`format`: expected 1, got 2"),
    ],
)
def test_damaged_edition_is_told(text: str, told: str, tiny: Path, call: Program) -> None:
    """An edition.toml that can't be used is no whole course: file, key and what was expected, status 3."""
    (tiny / "checkpoints" / "edition.toml").write_text(text, "utf-8")
    ran = call("--course", tiny, "list")
    assert (ran.status, ran.told[0]) == (3, f"course: checkpoints/edition.toml: {told}")
