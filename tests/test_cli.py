"""The command line's edge: options, exit statuses, outputs of every kind, and errors in one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course import __version__
from course.cli import COMMANDS

HEAVY = [
    "copier",
    "git",
    "pytest",
    "_pytest",
    "jinja2",
    "hypothesis",
    "yaml",
    "watchfiles",
]
LIGHT = [
    ["--help"],
    ["--version"],
    ["list"],
    ["list", "--json"],
    ["practice", "--help"],
    ["--course", "/dev/null/nowhere", "list"],
]


def test_help_names_every_command(call):
    """`course --help` shows the options and one line for each command there is."""
    ran = call("--help")
    assert (ran.status, ran.err) == (0, "")
    for name in COMMANDS:
        assert f"\n  {name} " in ran.out
    for option in ("-C DIR", "--course DIR", "--lang", "--version", "-v, --verbose"):
        assert option in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, call):
    """Every command of the table is there, and says what it does and what it takes."""
    ran = call(name, "--help")
    assert ran.status == 0, ran.err
    assert ran.out.startswith(f"Usage: course {name} ")


def test_version_is_the_projects(call):
    """`--version` is one line: name and version."""
    assert (
        call("--version").out == f"course, version {__version__}\n"
        or call("--version").out == f"course {__version__}\n"
    )


def test_no_command_is_wrong_use(call):
    """`course` alone shows the help, on standard error, with status 2."""
    ran = call()
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: course ")


@pytest.mark.parametrize(
    ("arguments", "words", "hint"),
    [
        (["lst"], "lst", "`course --help`"),
        (["practice"], "CHAPTER", "`course practice --help`"),
        (["practice", "02"], "DIR", "`course practice --help`"),
        (["practice", "02", "a", "b"], "b", "`course practice --help`"),
        (["list", "--jsn"], "--jsn", "`course list --help`"),
        (["practice", "02", "-rf"], "-r", "`course practice --help`"),
        (
            ["-C", "/dev/null/nowhere", "list"],
            "-C /dev/null/nowhere: there is no such directory",
            "Name a directory",
        ),
        (
            ["--course", "/dev/null/nowhere", "list"],
            "--course /dev/null/nowhere: there is no such directory, and no installed course of this name.",
            "Name a course's top folder, or an installed course; there is none.",
        ),
        (["-C", "/etc/passwd", "list"], "there is no such directory", "Name a directory"),
    ],
)
def test_wrong_use_is_told_with_what_is_right(arguments, words, hint, call):
    """Wrong use: status 2, what is wrong and where it says how it is used, nothing on standard output."""
    ran = call(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.told[0].startswith("course: ")
    assert words in ran.told[0]
    assert hint in ran.told[-1]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_quick_commands_import_nothing_heavy(arguments, tiny_folder, program):
    """What shows text only imports neither Copier nor GitPython nor pytest."""
    code = (
        "import sys; from course.cli import run; run(sys.argv[1:])\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)"
    )
    ran = program([sys.executable, "-c", code, *arguments], cwd=tiny_folder)
    assert ran.told[-1] == "[]"


def test_start_directory_is_given_by_option(tiny_folder, tmp_path, call):
    """-C DIR: as if started there, for finding the course and for relative destinations."""
    ran = call("-C", tiny_folder / "labs", "list", "--json", cwd=tmp_path)
    assert ran.document["course"] == "tiny"
    (tmp_path / "there").mkdir()
    made = call("-C", "there", "--course", tiny_folder, "practice", "01", "w", cwd=tmp_path)
    assert made.status == 0
    assert (tmp_path / "there" / "w" / ".git").is_dir()


@pytest.mark.parametrize(
    ("before", "after", "environment", "language"),
    [
        ([], [], {}, "en"),
        (["--lang", "zh"], [], {}, "zh"),
        ([], ["--lang", "zh"], {}, "zh"),
        (["--lang", "en"], ["--lang", "zh"], {}, "zh"),
        ([], [], {"COURSE_LANG": "zh"}, "zh"),
        (["--lang", "en"], [], {"COURSE_LANG": "zh"}, "en"),
        ([], [], {"COURSE_LANG": "fr"}, "en"),
        ([], [], {"COURSE_LANG": "fr", "LANG": "zh_CN.UTF-8"}, "zh"),
        ([], [], {"LANG": "zh_CN.UTF-8"}, "zh"),
        ([], [], {"LC_ALL": "zh_TW", "LANG": "en_US.UTF-8"}, "zh"),
        ([], [], {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ([], [], {"COURSE_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ([], [], {"LANG": "fr_FR.UTF-8"}, "en"),
    ],
)
def test_language_comes_from_option_variable_locale(
    before, after, environment, language, tiny_folder, call, monkeypatch
):
    """--lang, before or behind the command, then COURSE_LANG, then the locale, then the course's first language."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ran = call("--course", tiny_folder, *before, "list", "--json", *after)
    assert (
        ran.document["title"] == {"en": "Rebuild a text-search index", "zh": "重建一个文本搜索索引"}[language]
    )


def test_unknown_language_is_wrong_input(tiny_folder, call):
    """A language that the course doesn't have is told with those it has."""
    ran = call("--course", tiny_folder, "--lang", "fr", "list")
    assert ran.status == 2
    assert ran.told == ["course: This course has no language 'fr'.", "It has: en, zh."]


def test_practice_keeps_its_language(tiny_folder, call, tmp_path, monkeypatch):
    """Inside a practice its own language comes before the locale's, and after COURSE_LANG."""
    assert call("--course", tiny_folder, "--lang", "zh", "practice", "01", tmp_path / "w").status == 0
    assert call("list", "--json", cwd=tmp_path / "w").document["title"] == "重建一个文本搜索索引"
    monkeypatch.setenv("COURSE_LANG", "en")
    assert call("list", "--json").document["title"] == "Rebuild a text-search index"


@pytest.mark.parametrize(
    "arguments", [["list"], ["checkpoint", "02"], ["practice", "02", "w"], ["pin"]], ids=" ".join
)
def test_json_is_one_versioned_document(arguments, tiny, call, tmp_path):
    """--json prints one document on standard output, which names its format and kind, and nothing else."""
    ran = call("--course", tiny, *arguments, "--json", cwd=tmp_path)
    assert (ran.status, ran.err) == (0, "")
    assert (ran.document["format"], ran.document["kind"]) == (1, arguments[0])
    assert json.loads(json.dumps(ran.document)) == ran.document


def child(arguments, folder: Path, **options):
    command = [sys.executable, "-m", "course", "--course", str(folder), *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["--help"], ["checkpoint", "02"]], ids=" ".join
)
def test_reader_that_goes_away_is_no_error(arguments, tiny_folder, tiny_history):
    """`course list | head -1`: where the reader has gone nothing is told, and the status is SIGPIPE's at most."""
    reading, writing = os.pipe()
    os.close(reading)
    with child(arguments, tiny_folder, stdout=writing) as process:
        os.close(writing)
        assert process.stderr.read() == b""
        assert process.wait() in (0, 128 + signal.SIGPIPE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"]], ids=" ".join)
def test_output_on_a_full_disk_is_told(arguments, tiny_folder):
    """Where standard output can't be written one sentence says so, with status 3."""
    with Path("/dev/full").open("wb") as full, child(arguments, tiny_folder, stdout=full) as process:
        told = process.stderr.read().decode()
        assert process.wait() == 3
    assert told == "course: The disk is full.\nMake room, then run this again.\n"


def test_closed_outputs_are_no_error(tiny_folder):
    """Without standard output, or error, the command does its work all the same."""
    for closing in (">&-", "2>&-", ">&- 2>&-"):
        line = f'"$0" -m course --course "$1" list {closing}'
        ran = subprocess.run(
            ["sh", "-c", line, sys.executable, tiny_folder], capture_output=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, b"")


def test_vanished_directory_is_told(tmp_path, tiny_folder):
    """Started in a directory that is no longer there: one sentence, status 2."""
    gone = tmp_path / "gone"
    gone.mkdir()
    line = 'rmdir "$2"; exec "$0" -m course --course "$1" list'
    ran = subprocess.run(
        ["sh", "-c", line, sys.executable, tiny_folder, gone], cwd=gone, capture_output=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.decode().splitlines()[-2:] == [
        "course: The current directory is no longer there.",
        "Change to one that is.",
    ]


def test_verbose_shows_where_the_engine_failed(tiny, call):
    """-v adds the traceback of the course's or the engine's own failure; a user's mistake never has one."""
    (tiny / "labs" / "02" / "lab.toml").unlink()
    assert "Traceback" not in call("--course", tiny, "list").err
    assert "Traceback" in call("--course", tiny, "-v", "list").err
    assert "Traceback" not in call("--course", tiny / "labs", "-v", "list").err


def test_fault_of_the_engine_is_one_sentence(tiny_folder, call, monkeypatch):
    """Even what nobody expected ends in one sentence with status 3, and -v for the rest."""
    monkeypatch.setitem(sys.modules, "course.commands.list", None)
    ran = call("--course", tiny_folder, "list")
    assert ran.status == 3
    assert ran.told[0].startswith("course: The engine failed: ModuleNotFoundError: ")
    assert "-v" in ran.told[1]
    assert "Traceback" not in ran.err
