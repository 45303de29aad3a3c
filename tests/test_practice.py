"""A practice: the learner's own repository, what is in it and what is not, under any configuration of git."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from course.errors import InputError
from course.practice import PracticeError, find_practice, require_practice

# One thing a line that a user's configuration may hold, and that once broke some tool or other.
CONFIGS = {
    "hooks": "[core]\nhooksPath = {home}/hooks",
    "template": "[init]\ntemplateDir = {home}/template",
    "crlf": "[core]\nautocrlf = true\neol = crlf",
    "signing": "[commit]\ngpgSign = true\n[tag]\ngpgSign = true\n[gpg]\nprogram = {home}/hooks/gpg",
    "fsmonitor": "[core]\nfsmonitor = {home}/hooks/fsmonitor",
    "default branch": "[init]\ndefaultBranch = trunk",
    "bare repositories": "[safe]\nbareRepository = explicit",
    "hash format": "[init]\ndefaultObjectFormat = sha256",
    "protocol": '[protocol]\nallow = never\n[protocol "file"]\nallow = never',
    "attributes": "[core]\nattributesFile = {home}/attributes",
    "excludes": "[core]\nexcludesFile = {home}/excludes",
    "rewritten addresses": '[url "https://nowhere.invalid/"]\ninsteadOf = /',
    "broken file": "[core\nnonsense",
    "reftable": "[init]\ndefaultRefFormat = reftable",
    "filters": '[filter "x"]\nsmudge = false\nrequired = true\n[core]\nattributesFile = {home}/filters',
}
MODULES = {"yaml": "PyYAML", "pytest_asyncio": "pytest-asyncio"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with all that the configurations above name."""
    folder = tmp_path / "home"
    for place in (folder / "hooks", folder / "template" / "hooks"):
        place.mkdir(parents=True)
        for name in ("post-checkout", "reference-transaction", "fsmonitor", "gpg"):
            (place / name).write_text("#!/bin/sh\nexit 1\n", "utf-8")
            (place / name).chmod(0o755)
    (folder / "attributes").write_text("* text eol=crlf\n", "utf-8")
    (folder / "filters").write_text("* filter=x\n", "utf-8")
    (folder / "excludes").write_text("*\n", "utf-8")
    return folder


def users_git(folder: Path, *arguments: str, home: Path | None = None) -> list[str]:
    """The lines that the user's own git prints, in their own configuration."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env = {**kept, "HOME": str(home)} if home is not None else kept
    ran = subprocess.run(["git", *arguments], cwd=folder, env=env, capture_output=True, check=True)
    return ran.stdout.decode().splitlines()


def test_history_is_the_parent_and_one_starter_commit(practice, tiny_history):
    """The parent checkpoint is there under its own id, then exactly one commit "Chapter 02 starter"."""
    log = users_git(practice, "log", "--format=%H %P|%s", "main")
    start, parent = tiny_history.practices["02/en"], tiny_history.checkpoints["01"]
    assert log[0] == f"{start} {parent}|Chapter 02 starter"
    assert log[1].startswith(f"{parent} ")
    assert len(log) == 3
    assert users_git(practice, "for-each-ref", "--format=%(refname) %(objectname)") == [
        f"refs/course/start {start}",
        f"refs/heads/main {start}",
    ]
    assert users_git(practice, "symbolic-ref", "HEAD") == ["refs/heads/main"]


def test_nothing_leads_to_the_target(practice, tiny_history):
    """No object that only a target or a later stage reaches is in the practice, nor a way to fetch one."""
    mine = {
        line.split()[0] for line in users_git(practice, "cat-file", "--batch-all-objects", "--batch-check")
    }
    start = tiny_history.practices["02/en"]
    git = ["-c", "safe.bareRepository=all", "-C", str(tiny_history.repository)]
    reached = {line.split()[0] for line in users_git(practice, *git, "rev-list", "--objects", start)}
    every = {line.split()[0] for line in users_git(practice, *git, "rev-list", "--objects", "--all")}
    assert mine == reached
    assert every > reached
    assert users_git(practice, "remote") == []
    assert not (practice / ".git" / "objects" / "info" / "alternates").exists()
    assert not (practice / ".git" / "FETCH_HEAD").exists()
    answer = (tiny_history.repository.parent / "ids.json").read_text("utf-8")
    config = (practice / ".git" / "config").read_text("utf-8")
    assert str(tiny_history.repository) not in config
    assert tiny_history.checkpoints["02"] in answer


@pytest.mark.parametrize("case", CONFIGS)
def test_odd_git_configuration_changes_nothing(
    case, home, call, tiny_folder, tiny_history, tmp_path, monkeypatch
):
    """Under any user configuration the practice is the same, and to a usual git it is unchanged since."""
    (home / ".gitconfig").write_text(CONFIGS[case].format(home=home) + "\n", "utf-8")
    monkeypatch.setenv("HOME", str(home))
    made = call("--course", tiny_folder, "practice", "02", tmp_path / "w")
    assert made.status == 0, made.err
    assert users_git(tmp_path / "w", "rev-parse", "HEAD", home=tmp_path) == [tiny_history.practices["02/en"]]
    assert users_git(tmp_path / "w", "status", "--porcelain", home=tmp_path) == []
    assert not (tmp_path / "w" / ".git" / "hooks").exists()
    if case not in ("broken file", "filters", "fsmonitor"):
        assert users_git(tmp_path / "w", "status", "--porcelain", home=home) == []
    assert b"\r" not in (tmp_path / "w" / "src" / "findex" / "index.py").read_bytes()


def test_variables_of_git_change_nothing(call, tiny_folder, tiny_history, tmp_path, monkeypatch):
    """GIT_* variables that lead elsewhere reach nothing; without HOME and identity it works as well."""
    odd = {
        "GIT_DIR": "/dev/null/nowhere",
        "GIT_INDEX_FILE": "/dev/null/nowhere/i",
        "GIT_WORK_TREE": "/",
        "GIT_NAMESPACE": "x",
    }
    odd |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "maybe"}
    odd |= {
        "GIT_OBJECT_DIRECTORY": "/dev/null/nowhere/o",
        "GIT_CONFIG_GLOBAL": "/dev/null/nowhere/c",
        "GIT_EXEC_PATH": "/dev/null/nowhere",
    }
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HOME")
    made = call("--course", tiny_folder, "practice", "02", tmp_path / "w")
    assert made.status == 0, made.err
    assert users_git(tmp_path / "w", "rev-parse", "HEAD") == [tiny_history.practices["02/en"]]


def test_status_stays_clean_while_the_tools_work(practice, tests_in):
    """What tests, tools and the engine leave behind is ignored; the engine's own note is not in git."""
    tests_in(practice, "-q", "-m", "lab02_1")
    (practice / ".course" / "evidence.json").write_text("{}", "utf-8")
    (practice / ".venv").mkdir()
    (practice / ".venv" / "x.py").write_text("x\n", "utf-8")
    assert users_git(practice, "status", "--porcelain") == []
    assert users_git(practice, "ls-files", ".course") == [".course/practice.toml"]


@pytest.mark.parametrize(
    ("language", "title", "first"),
    [("en", "Ranking and phrases", "Run Lab 02.1"), ("zh", "排序与短语", "先运行")],
)
def test_practice_speaks_the_chosen_language(language, title, first, call, tiny_folder, tmp_path):
    """README, AGENTS and the note are in the language that was chosen; code and tests are the same."""
    folder = tmp_path / language
    assert call("--course", tiny_folder, "--lang", language, "practice", "02", folder).status == 0
    readme = (folder / "README.md").read_text("utf-8")
    assert title in readme
    assert first in readme
    assert "`pytest -m lab02_3`" in readme
    assert "Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现" in readme
    assert "src/findex/index.py" in (folder / "AGENTS.md").read_text("utf-8")
    assert tomllib.loads((folder / ".course" / "practice.toml").read_text("utf-8")) == {
        "format": 1, "course": "tiny", "chapter": "02", "language": language,
    }  # fmt: skip
    assert find_practice(folder / "src").language == language


def test_pyproject_registers_every_marker_strictly(practice):
    """Markers of all chapters in the tree are registered, strictly; asyncio mode and loop scopes are set."""
    options = tomllib.loads((practice / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    registered = {line.partition(":")[0] for line in options["markers"]}
    used = set()
    for file in (practice / "tests").glob("test_*.py"):
        used |= set(re.findall(r"pytest\.mark\.((?:lab|extra)\w+)", file.read_text("utf-8")))
    assert used <= registered
    assert {"lab02", "lab02_1", "lab02_2", "lab02_3", "extra02", "lab01", "lab01_1", "lab01_2"} <= registered
    assert {"--strict-markers", "--strict-config"} <= set(options["addopts"])
    assert options["asyncio_mode"] == "auto"
    assert (
        options["asyncio_default_fixture_loop_scope"]
        == options["asyncio_default_test_loop_scope"]
        == "function"
    )


def imported(folder: Path) -> set[str]:
    names = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names)


def test_project_needs_nothing_that_it_does_not_name(practice):
    """All that code and tests import is the package itself or a dependency of the project: never `course`."""
    project = tomllib.loads((practice / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.split(r"[<>=\[ ]", line)[0].lower() for line in project["dependencies"]}
    needed = {MODULES.get(name, name).lower() for name in imported(practice) - {"findex"}}
    assert needed <= named
    assert "course" not in imported(practice)
    assert all("<" in line and ">=" in line for line in project["dependencies"])


def test_project_builds_by_its_own_backend(practice, program, tmp_path):
    """The build backend that `pip install` calls takes the project as it stands, package and dependencies."""
    code = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    built = program([sys.executable, "-c", code, tmp_path], cwd=practice)
    assert built.status == 0, built.err
    with zipfile.ZipFile(tmp_path / built.out.splitlines()[-1]) as wheel:
        names = wheel.namelist()
        metadata = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("METADATA"))
    assert {"findex/__init__.py", "findex/index.py", "findex/py.typed"} <= set(names)
    assert "Name: findex" in metadata
    assert re.search(r"Requires-Dist: pytest[<>]", metadata)


def test_tests_run_where_course_is_not_installed(practice, program):
    """Without any `course` the same counts and closing lines come from plain pytest."""
    code = "import sys; sys.modules['course'] = None; import pytest; sys.exit(pytest.main(['-q', '-m', 'lab02_2']))"
    ran = program([sys.executable, "-c", code], cwd=practice)
    assert ran.status == 1
    assert ran.out.rstrip().endswith("\n\nLab 02.2 0/1 · first red: Lab 02.2 phrases 尚未实现")


def test_practice_is_found_from_inside_only(practice, tmp_path):
    """A practice is known by its note, from any folder inside; elsewhere there is none."""
    assert find_practice(practice / "src" / "findex").root == practice
    assert find_practice(practice).chapter == "02"
    assert find_practice(tmp_path) is None
    with pytest.raises(InputError, match="is not inside a practice"):
        require_practice(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "format = 1\n",
        "not toml",
        'format = 2\ncourse = "tiny"\nchapter = "02"\nlanguage = "en"\n',
        "format = 1\ncourse = 1\nchapter = 2\nlanguage = 3\n",
    ],
)
def test_damaged_note_is_told_with_its_cure(text, practice, call, tiny_folder):
    """A practice whose note is damaged: one sentence, status 3, and where it can be cured, how."""
    (practice / ".course" / "practice.toml").write_text(text, "utf-8")
    with pytest.raises(PracticeError):
        find_practice(practice)
    ran = call("--course", tiny_folder, "list", cwd=practice)
    assert ran.status == 3
    assert str(practice / ".course" / "practice.toml") in ran.told[0]
    cure = re.search("`(git .*)` brings it back", ran.told[1])
    assert subprocess.run(cure[1], shell=True, cwd="/", check=False).returncode == 0
    assert find_practice(practice).chapter == "02"


def test_practice_finds_its_course_again(practice, call, tiny_folder, monkeypatch):
    """Inside a practice the course it was made from is meant, without any option."""
    ran = call("list", "--json", cwd=practice / "src")
    assert (ran.status, ran.document["course"]) == (0, "tiny")


def test_practice_of_another_course_is_told(practice, call):
    """A practice whose course is not the one that was named is wrong use, told with both names."""
    other = Path(__file__).resolve().parent.parent
    note = practice / ".course" / "practice.toml"
    note.write_text(note.read_text("utf-8").replace('"tiny"', '"other"'), "utf-8")
    ran = call("list", cwd=practice)
    assert ran.status == 2
    assert "a practice of the course 'other', not of 'tiny'" in ran.told[0]
    assert "--course DIR" in ran.told[1]
    assert other.is_dir()


def test_course_under_a_name_that_is_no_unicode(tiny, call, tmp_path):
    """A course that lies under an odd name can be practised, and its practice stays usable."""
    for name in ('back\\slash "quote" \t', os.fsdecode(b"byte-\xff")):
        course = tiny.rename(tmp_path / name)
        folder = tmp_path / f"w{len(name)}"
        made = call("--course", course, "practice", "02", folder)
        assert made.status == 0, made.err
        assert find_practice(folder).source in (course, None)
        tiny = course
