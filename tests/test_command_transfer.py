"""`course transfer`: a learner's own test, judged without showing it the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]

GOOD = """
from findex import index

def built():
    made = index.Index()
    made.add("a", "old red fish")
    made.add("b", "red old fish")
    return made

def test_words_of_a_phrase_follow_one_another():
    assert built().phrase("red fish") == ["a"]

def test_quotes_ask_for_a_phrase():
    assert [name for name, _ in built().search('"red fish"')] == ["a"]
"""


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    """Write a transfer test: `own(text)`."""

    def write(text: str) -> Path:
        file = tmp_path / "test_mine.py"
        file.write_text(text, "utf-8")
        return file

    return write


def test_good_test_catches_every_mistake(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """Green on the reference and red on each fault that lab.toml lists: status 0."""
    ran = call("--course", tiny_folder, "transfer", "02", own(GOOD), cwd=tiny_folder)
    assert ran.status == 0, ran.out + ran.err
    assert ran.out.splitlines()[-1] == "2 of 2 mistakes caught"


def test_what_escapes_is_described_not_solved(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """A fault that the test does not see is told by what goes wrong, without a line of code."""
    text = GOOD[: GOOD.index("def test_quotes")]
    ran = call("--course", tiny_folder, "transfer", "02", own(text), cwd=tiny_folder)
    assert ran.status == 1
    assert "Quotes are punctuation like any other." in " ".join(ran.out.split())
    assert ran.out.splitlines()[-1] == "1 of 2 mistakes caught"


def test_test_that_is_red_on_the_reference_is_told_first(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """A test that is wrong itself catches nothing."""
    ran = call(
        "--course", tiny_folder, "transfer", "02", own("def test_it():\n    assert False\n"), cwd=tiny_folder
    )
    assert ran.status == 1
    assert "red where it has to be green" in ran.out


def test_file_without_tests_is_no_all_clear(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """Nothing collected is not passed."""
    ran = call("--course", tiny_folder, "transfer", "02", own("x = 1\n"), cwd=tiny_folder)
    assert ran.status == 1
    assert "no test was found" in ran.out


def test_reference_has_no_text_to_be_read(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """A test can't read the reference's source, and what it prints is not shown."""
    text = (
        "import inspect\nfrom pathlib import Path\nfrom findex import index\n"
        "def test_source():\n"
        "    print('LEAK', index.__file__)\n"
        "    source = ''.join(p.read_text() for p in Path(index.__file__).parent.rglob('index.py'))\n"
        "    assert source == ''\n"
        "    try:\n        inspect.getsource(index)\n"
        "    except (OSError, TypeError):\n        return\n"
        "    raise AssertionError('LEAK')\n"
    )
    ran = call("--course", tiny_folder, "transfer", "02", own(text), cwd=tiny_folder)
    assert "1 tests green" in ran.out
    assert "LEAK" not in ran.out + ran.err


def test_chapter_without_exercise_is_refused(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """A chapter that has none says so."""
    ran = call("--course", tiny_folder, "transfer", "01", own(GOOD), cwd=tiny_folder)
    assert ran.status == 2


def test_missing_and_misnamed_files_are_refused(call: Program, tiny_folder: Path, tmp_path: Path) -> None:
    """A file that is not there, or that pytest would not find, is wrong use."""
    (tmp_path / "mine.py").write_text("", "utf-8")
    for name in ("nothing.py", "mine.py"):
        ran = call("--course", tiny_folder, "transfer", "02", tmp_path / name, cwd=tiny_folder)
        assert ran.status == 2
        assert "Traceback" not in ran.err


def test_adapters_are_judged_where_the_chapter_ships_them(
    call: Program, tiny: Path, own: Callable[[str], Path]
) -> None:
    """With `module`, the test imports an adapter: right ones have to pass, broken ones to fail."""
    manifest = tiny / "labs" / "02" / "lab.toml"
    text = manifest.read_text("utf-8")
    manifest.write_text(
        text[: text.index("[transfer]")] + '[transfer]\nmodule = "library_adapter"\n', "utf-8"
    )
    folder = tiny / "labs" / "02" / "transfer"
    folder.mkdir()
    (folder / "correct_sum.py").write_text('"""Adds."""\n\n\ndef add(a, b):\n    return a + b\n', "utf-8")
    (folder / "broken_minus.py").write_text(
        '"""Takes away."""\n\n\ndef add(a, b):\n    return a - b\n', "utf-8"
    )
    test = own("from library_adapter import add\ndef test_add():\n    assert add(2, 3) == 5\n")
    ran = call("--course", tiny, "transfer", "02", test, cwd=tiny)
    assert ran.status == 0, ran.out + ran.err
    assert ran.out.splitlines()[-1] == "1 of 1 mistakes caught"


def test_nothing_wrong_is_judged_by_a_test_that_is_wrong(
    call: Program, tiny_folder: Path, own: Callable[[str], Path]
) -> None:
    """A test that is red on the reference is told so once, and the mistakes are not gone through."""
    file = own("def test_it():\n    assert False\n")
    ran = call("--course", tiny_folder, "transfer", "02", file, "--json", cwd=tiny_folder)
    assert [row["against"] for row in ran.document["rows"]] == ["right"]


def test_test_that_leaves_something_behind_is_no_all_clear(
    call: Program, tiny_folder: Path, own: Callable[[str], Path], tmp_path: Path
) -> None:
    """What is green once and red ever after has caught nothing: the reference is run again in the end."""
    text = (
        "from pathlib import Path\n"
        f"mark = Path({str(tmp_path / 'mark')!r})\n"
        "def test_once():\n    seen = mark.exists()\n    mark.touch()\n    assert not seen\n"
    )
    ran = call("--course", tiny_folder, "transfer", "02", own(text), "--json", cwd=tiny_folder)
    rows = ran.document["rows"]
    assert ran.status == 1
    assert (rows[-1]["against"], rows[-1]["ok"]) == ("right", False)
