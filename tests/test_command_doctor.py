"""`course doctor`: what gets in the way is named, with how to mend it, and nothing stops the doctor."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NAME = "src/findex/index.py"


@pytest.fixture
def examine(course):
    """The doctor's findings by name (the last of a name where there are more), and the exit status."""

    def start(cwd, *before, env=None):
        answer = course(*before, "doctor", "--json", cwd=cwd, env=env)
        assert answer.err == ""
        document = answer.document
        assert (document["format"], document["kind"]) == (1, "doctor")
        levels = [finding["level"] for finding in document["findings"]]
        assert [document[level] for level in ("ok", "warn", "bad")] == [
            levels.count(level) for level in ("ok", "warn", "bad")
        ]
        assert answer.status == (3 if "bad" in levels else 0)
        for finding in document["findings"]:
            assert (finding["mend"] is None) == (finding["level"] == "ok"), finding
        return {finding["name"]: finding for finding in document["findings"]}

    return start


def level(found, name):
    return found[name]["level"]


def test_healthy_practice_has_no_bad_line(practice, course):
    """Each line is ok, warn or bad; without a bad one the status is 0."""
    answer = course("doctor", cwd=practice)
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert all(line[:5] in ("ok   ", "warn ", "     ") for line in lines[:-2]), answer.out
    assert lines[0].startswith(
        f"ok   Python                 CPython {sys.version.split()[0]}, {sys.executable}"
    )
    assert lines[-1].endswith(", 0 bad")


def test_json_names_everything_that_is_looked_at(practice, examine):
    """From Python and git over pytest and the file system to the practice and the cache."""
    found = examine(practice)
    names = {
        "Python", "git", "pytest", "pytest-asyncio", "hypothesis", "PyYAML", "jsonschema", "pathspec",
        "PYTHONPATH", "findex elsewhere", "start-up code", "fork", "file system", "encoding", "course",
        "practice", "repository", "line endings", "cache",
    }  # fmt: skip
    assert names <= found.keys()
    assert "pytest configuration" in found
    assert practice.name in found["practice"]["seen"]


def test_outside_of_a_practice_it_works_too(examine, tiny_folder):
    """Nothing of a practice is looked at where there is none."""
    found = examine(tiny_folder)
    assert (level(found, "practice"), found["practice"]["seen"]) == ("ok", "you are not inside one")
    assert level(found, "course") == "ok"
    assert "repository" not in found


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("PYTHONPATH", "/somewhere", "warn"),
        ("PYTEST_ADDOPTS", "-x", "warn"),
        ("PYTEST_PLUGINS", "nothing", "warn"),
        ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1", "warn"),
        ("PYTHONOPTIMIZE", "2", "warn"),
        ("PYTHONOPTIMIZE", "yes", "warn"),
        ("GIT_DIR", "/nowhere", "warn"),
        ("COURSE_LANG", "xx", "warn"),
    ],
)
def test_variables_that_lead_astray_are_named(practice, examine, variable, value, wanted):
    """Each is told with the command that takes it out."""
    found = examine(practice, env={variable: value})
    assert (level(found, variable), found[variable]["mend"]) == (wanted, f"unset {variable}")


def test_no_optimization_is_no_finding(practice, examine):
    """PYTHONOPTIMIZE=0 takes no assertion away."""
    assert "PYTHONOPTIMIZE" not in examine(practice, env={"PYTHONOPTIMIZE": "0"})


def test_python_path_to_another_copy_is_named(practice, examine, tmp_path):
    """A PYTHONPATH that holds the package under study says so."""
    (tmp_path / "foreign/findex").mkdir(parents=True)
    found = examine(practice, env={"PYTHONPATH": str(tmp_path / "foreign")})
    assert found["PYTHONPATH"]["seen"].startswith(f"leads to another findex in {tmp_path / 'foreign'}")


def test_configuration_above_the_practice_is_named(practice, examine):
    """pytest.ini, conftest.py, and tables in pyproject.toml, tox.ini and setup.cfg."""
    above = practice.parent
    (above / "pytest.ini").write_text("[pytest]\n")
    (above / "conftest.py").write_text("")
    (above / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (above / "tox.ini").write_text("[pytest]\n")
    (above / "setup.cfg").write_text("[tool:pytest]\n")
    finding = examine(practice)["pytest configuration"]
    assert finding["level"] == "warn"
    for name in ("pytest.ini", "conftest.py", "pyproject.toml", "tox.ini", "setup.cfg"):
        assert str(above / name) in finding["seen"]


def test_unreadable_configuration_above_is_passed_over(practice, examine):
    """Files that are none of pytest's say nothing."""
    above = practice.parent
    (above / "pyproject.toml").write_bytes(b"\xff[")
    (above / "tox.ini").write_text("no section\n")
    (above / "setup.cfg").write_text("[metadata]\n")
    assert level(examine(practice), "pytest configuration") == "ok"


def test_configuration_that_overrules_the_practice_is_bad(practice, course):
    """A pytest.ini beside the practice's pyproject.toml, even an empty one, takes its place."""
    (practice / "pytest.ini").write_text("")
    answer = course("doctor", cwd=practice)
    assert answer.status == 3
    assert "bad  pytest configuration   pytest.ini overrules the practice's pyproject.toml" in answer.out
    assert "mend: rm pytest.ini" in answer.out


def test_lost_configuration_is_bad_and_mended_by_the_told_command(practice, course, program):
    """The mend runs as it stands."""
    (practice / "pyproject.toml").write_text("")
    answer = course("doctor", cwd=practice)
    assert answer.status == 3
    mend = next(line for line in answer.out.splitlines() if "mend: git" in line).partition("mend: ")[2]
    assert program(["sh", "-c", mend], cwd=practice).status == 0
    assert course("doctor", cwd=practice).status == 0


@pytest.fixture
def interpreter(tmp_path, program):
    """A virtual environment of its own that sees this one's packages, so that a test may spoil it."""
    folder = tmp_path / "venv"
    made = program([sys.executable, "-m", "venv", "--without-pip", folder])
    assert made.status == 0, made.err
    python = folder / "bin/python"
    (site,) = folder.glob("lib/python*/site-packages")
    here = [sysconfig.get_path("purelib"), str(Path(__file__).parent.parent)]
    (site / "shared.pth").write_text("".join(f"{path}\n" for path in here))

    def start(cwd, env=None):
        return program([python, "-m", "course", "doctor", "--json"], cwd=cwd, env=env)

    return site, start


def findings(answer):
    return {finding["name"]: finding for finding in answer.document["findings"]}


def test_other_copy_in_the_interpreter_is_a_warning(practice, interpreter):
    """An installed copy of the package is named with its place."""
    site, start = interpreter
    (site / "findex").mkdir()
    (site / "findex/__init__.py").write_text("")
    finding = findings(start(practice))["findex elsewhere"]
    assert finding["level"] == "warn"
    assert str(site / "findex/__init__.py") in finding["seen"]


def test_copy_loaded_at_start_up_is_bad(practice, interpreter):
    """A .pth file that imports the package before anything else is found, and so is the .pth file."""
    site, start = interpreter
    (site / "findex").mkdir()
    (site / "findex/__init__.py").write_text("")
    (site / "trick.pth").write_text("import findex\n")
    answer = start(practice)
    assert answer.status == 3
    assert findings(answer)["findex elsewhere"]["level"] == "bad"
    assert str(site / "trick.pth") in findings(answer)["start-up code"]["seen"]


def test_finder_that_serves_another_copy_is_bad(practice, interpreter):
    """A finder that comes before the path decides what is imported; the doctor asks it."""
    site, start = interpreter
    other = site / "other"
    (other / "findex").mkdir(parents=True)
    (other / "findex/__init__.py").write_text("")
    (site / "sitecustomize.py").write_text(
        "import sys\nfrom importlib.machinery import PathFinder\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        return PathFinder.find_spec(name, [{str(other)!r}]) if name == 'findex' else None\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    answer = start(practice)
    assert answer.status == 3
    finding = findings(answer)["findex elsewhere"]
    assert finding["seen"] == f"{other / 'findex/__init__.py'} is imported instead of the practice's"
    assert str(site / "sitecustomize.py") in findings(answer)["start-up code"]["seen"]


def test_practice_installed_from_itself_is_fine(practice, interpreter):
    """`pip install -e .` in the practice leads to its own sources."""
    site, start = interpreter
    (site / "editable.pth").write_text(f"{practice / 'src'}\n")
    assert findings(start(practice))["findex elsewhere"]["level"] == "ok"


def test_missing_plugin_is_bad(practice, interpreter):
    """A plugin that can't be imported is named with its reason."""
    site, start = interpreter
    (site / "pytest_asyncio").mkdir()
    (site / "pytest_asyncio/__init__.py").write_text("raise ImportError('half installed')\n")
    answer = start(practice)
    assert answer.status == 3
    finding = findings(answer)["pytest-asyncio"]
    assert (finding["level"], finding["seen"]) == ("bad", "can't be imported: ImportError: half installed")
    assert "pip install pytest-asyncio" in finding["mend"].replace("'", "")


def test_interpreter_that_fails_at_start_up_is_bad(practice, interpreter):
    """Where no plain program runs, the doctor still ends with its findings."""
    site, start = interpreter
    (site / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('probe.py' in part for part in sys.orig_argv):\n    raise SystemExit('not today')\n"
    )
    answer = start(practice)
    assert (answer.status, answer.err) == (3, "")
    assert "can't start a plain program: SystemExit: not today." in findings(answer)["packages"]["seen"]


def test_missing_git_is_bad(practice, course, tmp_path):
    """Without git on PATH it says so; what needs git is bad or can't be looked at, and nothing fails."""
    answer = course("doctor", cwd=practice, env={"PATH": str(tmp_path)})
    assert (answer.status, answer.err) == (3, "")
    assert "bad  git                    git was not found on PATH." in answer.out


@pytest.mark.parametrize("version", ["git version 2.17.1", "nonsense"])
def test_old_git_is_bad(practice, course, tmp_path, version):
    """A git that lacks what the engine uses is named."""
    (tmp_path / "git").write_text(f"#!/bin/sh\necho '{version}'\n")
    (tmp_path / "git").chmod(0o755)
    answer = course("doctor", cwd=practice, env={"PATH": str(tmp_path)})
    assert answer.status == 3
    assert "mend: Install git 2.29 or newer." in answer.out


# The practice


def damage_mark(practice, git):
    (practice / ".course/practice.toml").write_text("format = [")


def remove_mark(practice, git):
    (practice / ".course/practice.toml").unlink()


def remove_repository(practice, git):
    (practice / ".git").rename(practice.parent / "lost")


@pytest.mark.parametrize("damage", [damage_mark, remove_mark, remove_repository])
def test_damaged_practice_is_bad(practice, examine, tiny_folder, git, damage):
    """A damaged .course or a lost repository is bad, and the rest is looked at all the same."""
    damage(practice, git)
    found = examine(practice, "--course", tiny_folder)
    assert level(found, "practice") == "bad"
    assert level(found, "cache") == "ok"


@pytest.mark.parametrize("damage", [damage_mark, remove_mark])
def test_damaged_mark_is_mended_by_the_told_command(practice, course, program, tiny_folder, git, damage):
    """The mend brings practice.toml back."""
    damage(practice, git)
    out = course("--course", tiny_folder, "doctor", cwd=practice).out
    mend = next(line for line in out.splitlines() if "mend:" in line and "practice.toml" in line)
    command = mend.partition("mend: ")[2].removeprefix("`").removesuffix("` brings it back.")
    assert program(["sh", "-c", command], cwd=practice).status == 0
    assert course("doctor", cwd=practice).status == 0


def test_lost_start_ref_is_a_warning_and_comes_back(practice, course, program, git):
    """refs/course/start is found again in the learner's own history."""
    (before,) = git(practice, "rev-parse", "refs/course/start")
    git(practice, "update-ref", "-d", "refs/course/start")
    out = course("doctor", cwd=practice).out
    assert "warn repository             refs/course/start is gone" in out
    mend = next(line for line in out.splitlines() if "update-ref" in line).partition("mend: ")[2]
    assert program(["sh", "-c", mend], cwd=practice).status == 0
    assert git(practice, "rev-parse", "refs/course/start") == [before]


def test_changed_tests_are_a_warning_and_come_back(practice, course, program):
    """Tests and project files that differ from those of the starter are named."""
    test = practice / "tests/test_02_search.py"
    before = test.read_bytes()
    test.write_text("")
    answer = course("doctor", cwd=practice)
    assert answer.status == 0
    assert "warn repository             not as the practice was made: tests/test_02_search.py" in answer.out
    mend = next(line for line in answer.out.splitlines() if "mend: git" in line).partition("mend: ")[2]
    assert program(["sh", "-c", mend], cwd=practice).status == 0
    assert test.read_bytes() == before


def test_missing_teaching_file_leads_to_reset(practice, examine):
    """A teaching file that is gone is a warning."""
    (practice / NAME).unlink()
    finding = examine(practice)["teaching files"]
    assert (finding["level"], finding["seen"]) == ("warn", f"missing, a link or a folder: {NAME}")
    assert finding["mend"].endswith(f"reset {NAME}")


def test_carriage_returns_are_a_warning_and_mended(practice, course, program):
    """CRLF in a teaching file is told, and the told command takes it out."""
    file = practice / NAME
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    out = course("doctor", cwd=practice).out
    assert f"warn line endings           CRLF line ends in {NAME}" in out
    mend = next(line for line in out.splitlines() if "sed" in line).partition("mend: ")[2]
    assert program(["sh", "-c", mend], cwd=practice).status == 0
    assert b"\r" not in file.read_bytes()


@pytest.mark.parametrize("where", ["local", "user", "xdg"])
def test_autocrlf_is_read_as_the_learners_git_has_it(practice, examine, tmp_path, where):
    """Wherever it is set; .gitattributes overrules it, and without that it is a warning."""
    home = tmp_path / "home"
    (home / ".config/git").mkdir(parents=True)
    if where == "local":
        subprocess.run(["git", "config", "core.autocrlf", "true"], cwd=practice, check=True)
    else:
        file = home / (".gitconfig" if where == "user" else ".config/git/config")
        file.write_text("[core]\n\tautocrlf = true\n")
    env = {"HOME": str(home)}
    ruled = examine(practice, env=env)["line endings"]
    assert (ruled["level"], ruled["seen"]) == ("ok", "LF; core.autocrlf is true; .gitattributes keeps LF")
    (practice / ".gitattributes").unlink()
    assert level(examine(practice, env=env), "line endings") == "warn"


@pytest.mark.parametrize("note", ["hints", "quiz"])
def test_damaged_notes_are_a_warning(practice, examine, note):
    """The engine's own notes are looked at."""
    (practice / f".course/{note}.json").write_text("{")
    assert level(examine(practice), "notes") == "warn"


def test_moved_course_is_named(practice, examine, tiny_folder, tmp_path):
    """A practice whose course is gone says so; the course that is found instead is another one."""
    (practice / ".course/source.toml").write_text(f'folder = "{tmp_path / "nowhere"}"\n')
    found = examine(practice, "--course", tiny_folder)
    assert level(found, "practice") == "warn"
    assert level(found, "course") == "ok"


def test_broken_manifest_is_bad(tiny, examine):
    """A course that can't be read is bad, with file and key."""
    (tiny / "labs/02/lab.toml").write_text("format = 1\n")
    found = examine(tiny)
    assert level(found, "course") == "bad"
    assert found["course"]["seen"].startswith("labs/02/lab.toml: ")


def test_other_courses_practice_is_bad(practice, examine, tiny):
    """A practice of another course than the one that is named."""
    manifest = tiny / "checkpoints/course.toml"
    manifest.write_text(manifest.read_text("utf-8").replace('id = "tiny"', 'id = "other"'), "utf-8")
    assert level(examine(practice, "--course", tiny), "course") == "bad"


def test_ascii_output_is_a_warning_and_never_a_failure(practice, course):
    """Where Chinese can't be shown it says so, in what can be."""
    answer = course("doctor", cwd=practice, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert answer.status == 0
    assert "warn encoding " in answer.out
    assert answer.out.isascii()


# The cache


def test_cache_is_told_and_cleaned(examine, course, own_cache, tiny_folder):
    """Place and size are told; --clean-cache removes the histories and nothing else."""
    assert course("checkpoint", "02", cwd=tiny_folder).status == 0
    (own_cache / "mine.txt").write_text("not the engine's")
    (own_cache / "history/mine").mkdir()
    seen = examine(tiny_folder)["cache"]["seen"]
    assert seen.startswith(f"{own_cache}, 1 history, ")
    cleaned = course("doctor", "--clean-cache", cwd=tiny_folder)
    assert (cleaned.status, cleaned.out.split(", ")[0]) == (0, f"{own_cache}: 1 history removed")
    assert sorted(path.name for path in own_cache.rglob("*")) == ["history", "mine", "mine.txt"]
    assert course("checkpoint", "02", cwd=tiny_folder).status == 0


def test_cleaning_leaves_no_empty_folder(course, own_cache, tiny_folder):
    """A cache that held nothing else is gone; cleaning what is not there is fine."""
    assert course("checkpoint", "02", cwd=tiny_folder).status == 0
    assert course("doctor", "--clean-cache", cwd=tiny_folder).status == 0
    assert not own_cache.exists()
    assert course("doctor", "--clean-cache", cwd=tiny_folder).status == 0


def test_cache_that_cannot_be_written_is_bad(examine, tiny_folder, tmp_path):
    """A file where the cache should lie is named with the variable that chooses another place."""
    (tmp_path / "file").write_text("")
    found = examine(tiny_folder, env={"COURSE_CACHE_DIR": str(tmp_path / "file" / "deeper")})
    assert level(found, "cache") == "bad"
    assert "COURSE_CACHE_DIR" in found["cache"]["mend"]


def test_lost_home_is_no_obstacle(practice, course):
    """Without HOME, without PATH to anything, it ends with its findings."""
    answer = course("doctor", cwd=practice, env={"HOME": None, "PATH": "", "LANG": None})
    assert answer.status in (0, 3)
    assert "Traceback" not in answer.out + answer.err
    assert os.linesep.join(answer.out.splitlines()[-1:]).endswith(" bad")


@pytest.mark.parametrize("harm", ["gone", "edited"])
def test_file_that_is_not_the_learners_to_change_comes_back(practice, examine, git, harm):
    """What an earlier chapter gave, deleted or edited, is named, and the told command brings it back."""
    given = practice / "src" / "findex" / "__init__.py"
    before = given.read_bytes()
    if harm == "gone":
        given.unlink()
    else:
        given.write_bytes(before + b"# mine\n")
    found = examine(practice)["repository"]
    assert (found["level"], found["seen"]) == (
        "warn",
        "not as the practice was made: src/findex/__init__.py",
    )
    assert subprocess.run(["sh", "-c", found["mend"]], cwd=practice, check=False).returncode == 0
    assert given.read_bytes() == before
    assert level(examine(practice), "repository") == "ok"
