"""`course diff`: what the reference changed, shown to those who say that they have tried."""

from __future__ import annotations

import subprocess

import pytest

from course.git import Git


def expected_diff(history, before, after):
    command = ["diff", "--no-color", before, after, "--", "src/findex/index.py"]
    return Git(history.repository).run(*command) + "\n"


def test_nobody_to_ask_is_refused(practice, call):
    """Without a terminal it takes --yes, with --json too."""
    for arguments in (["diff", "02"], ["diff", "02", "--json"]):
        answer = call(*arguments, cwd=practice)
        assert (answer.status, answer.out) == (2, "")
        assert answer.told == [
            "course: This shows the answers of chapter 02, and nobody can be asked whether they tried.",
            "Once you have, add --yes.",
        ]


def test_yes_shows_gits_own_diff(call, tiny_folder, tiny_history):
    """From the parent to the target, the teaching files only, as git has it."""
    answer = call("--course", tiny_folder, "diff", "2", "--yes", cwd="/")
    points = tiny_history.checkpoints
    assert (answer.status, answer.out) == (0, expected_diff(tiny_history, points["01"], points["02"]))


def test_diff_applies_to_a_practice_of_the_parent(practice, call, tiny_history):
    """Piped output is a patch: on the parent's file it gives the target's."""
    file = practice / "src/findex/index.py"
    show = Git(tiny_history.repository).run
    file.write_text(show("show", f"{tiny_history.checkpoints['01']}:src/findex/index.py") + "\n", "utf-8")
    patch = call("diff", "02", "--yes", cwd=practice).out
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=practice, check=True)
    target = show("show", f"{tiny_history.checkpoints['02']}:src/findex/index.py") + "\n"
    assert file.read_text("utf-8") == target


def test_first_chapters_are_compared_with_nothing(tiny, call):
    """A foundation chapter is given whole, so that nobody is asked; the first one has no parent."""
    manifest = tiny / "labs/00/lab.toml"
    text = manifest.read_text("utf-8").replace(
        "teaching_files = []", 'teaching_files = ["src/findex/__init__.py"]'
    )
    manifest.write_text(text, "utf-8")
    answer = call("--course", tiny, "diff", "00", cwd="/")
    assert (answer.status, answer.out.splitlines()[0]) == (
        0,
        "diff --git a/src/findex/__init__.py b/src/findex/__init__.py",
    )


def test_mine_compares_with_the_learners_files(practice, call, done):
    """--mine goes from the learner's files to the reference's; equal files have no difference."""
    file = practice / "src/findex/index.py"
    file.write_text("mine = 1\r\n", "utf-8")
    lines = call("diff", "02", "--mine", "--yes", cwd=practice).out.split("\n")
    assert lines[2:4] == ["--- mine/src/findex/index.py", "+++ reference/src/findex/index.py"]
    assert "-mine = 1\r" in lines
    file.unlink()
    gone = call("diff", "02", "--mine", "--yes", cwd=practice).out
    assert "new file mode 100644" in gone
    done(practice, "02.3")
    assert call("diff", "02", "--mine", "--yes", cwd=practice).out == "There is no difference.\n"


def test_mine_leaves_both_repositories_alone(practice, call, git, tiny_history):
    """No object of the learner's gets into the cache, none of the reference's into the practice."""
    (practice / "src/findex/index.py").write_text("mine = 1\n", "utf-8")
    before = [git(folder, "count-objects", "-v") for folder in (practice, tiny_history.repository)]
    assert call("diff", "02", "--mine", "--yes", cwd=practice).status == 0
    assert [git(folder, "count-objects", "-v") for folder in (practice, tiny_history.repository)] == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["diff", "00", "--yes"], "course: Chapter 00 has no teaching files."),
        (["diff", "9", "--yes"], "course: This course has no chapter 9."),
        (["diff", "01", "--yes", "--mine"], "course: This is a practice of chapter 02, not of 01."),
        (["diff"], "course: Missing argument 'N'."),
    ],
)
def test_wrong_use_is_one_sentence(practice, call, arguments, sentence):
    """What can't be compared is said."""
    answer = call(*arguments, cwd=practice)
    assert (answer.status, answer.told[0]) == (2, sentence)


def test_mine_outside_of_a_practice_is_refused(call, tiny_folder):
    """There is no mine elsewhere."""
    answer = call("--course", tiny_folder, "diff", "02", "--mine", "--yes", cwd="/")
    assert (answer.status, answer.told[0]) == (2, "course: / is not inside a practice.")


def test_json_holds_the_diff(practice, call):
    """A program gets chapter, files and the text."""
    document = call("diff", "02", "--yes", "--json", cwd=practice).document
    text = document.pop("diff")
    assert text.startswith("diff --git a/src/findex/index.py b/src/findex/index.py\n")
    assert document == {
        "format": 1,
        "kind": "diff",
        "chapter": "02",
        "from": "parent",
        "to": "reference",
        "files": ["src/findex/index.py"],
    }


def test_terminal_is_asked_first(practice, terminal, ended):
    """No shows nothing and leads to the handout; yes shows it, highlighted."""
    child = terminal("diff", "02", cwd=practice)
    child.expect_exact("Have you tried it yourself? [y/N] ")
    child.sendline("")
    refused = ended(child)
    assert refused.status == 0
    assert "_PHRASE" not in refused.out
    assert "handout 02" in refused.out
    child = terminal("diff", "02", "--no-pager", cwd=practice, env={"TERM": "xterm-256color"})
    child.expect_exact("[y/N] ")
    child.sendline("y")
    shown = ended(child)
    assert shown.status == 0
    assert "_PHRASE" in shown.out
    assert "\x1b[" in shown.out


def test_end_of_input_is_no(practice, terminal, ended):
    """Ctrl-D at the question shows nothing."""
    child = terminal("diff", "02", cwd=practice)
    child.expect_exact("[y/N] ")
    answer = ended(child, child.sendeof)
    assert (answer.status, "_PHRASE" in answer.out) == (0, False)
