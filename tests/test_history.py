"""The teaching history: the same ids everywhere, a cache that survives builders, kills and damage."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from course.catalog import Course, load_course
from course.git import Git
from course.history import History, content_hash, open_history
from course.places import CONTENT_FOLDERS
from course.projects import project_files
from course.stages import stage_tree
from course.trees import practice_tree, target_tree

ODD_CONFIG = """\
[init]
    templateDir = {home}/template
    defaultBranch = trunk
    defaultObjectFormat = sha256
[core]
    hooksPath = {home}/hooks
    autocrlf = true
    eol = crlf
    fsmonitor = {home}/hooks/fsmonitor
    attributesFile = {home}/attributes
    excludesFile = {home}/excludes
    quotePath = true
    untrackedCache = true
[commit]
    gpgSign = true
[tag]
    gpgSign = true
[gpg]
    program = {home}/hooks/gpg
[user]
    useConfigOnly = true
    signingKey = none
[safe]
    bareRepository = explicit
[protocol]
    allow = never
[protocol "file"]
    allow = never
[transfer]
    hideRefs = refs/heads/practice
    fsckObjects = true
[fetch]
    fsckObjects = true
[url "https://nowhere.invalid/"]
    insteadOf = /
[gc]
    auto = 1
"""
ODD_VARIABLES = {
    "GIT_DIR": "/dev/null/nowhere/git", "GIT_WORK_TREE": "/dev/null/nowhere", "GIT_INDEX_FILE": "/dev/null/nowhere/index",
    "GIT_OBJECT_DIRECTORY": "/dev/null/nowhere/objects", "GIT_NAMESPACE": "odd", "GIT_DEFAULT_HASH": "sha256",
    "GIT_AUTHOR_NAME": "Odd", "GIT_AUTHOR_EMAIL": "odd@odd", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00",
    "GIT_COMMITTER_NAME": "Odd", "GIT_COMMITTER_EMAIL": "odd@odd", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00",
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "maybe",
    "GIT_CONFIG_PARAMETERS": "'core.bare'='maybe'", "GIT_ALLOW_PROTOCOL": "https", "GIT_CEILING_DIRECTORIES": "/",
    "GIT_TEMPLATE_DIR": "/dev/null/nowhere", "GIT_TRACE": "1", "GIT_PYTHON_TRACE": "full", "GIT_PYTHON_REFRESH": "error",
    "GIT_EXEC_PATH": "/dev/null/nowhere/exec", "GIT_SSH_COMMAND": "false", "GIT_PYTHON_GIT_EXECUTABLE": "/dev/null/nowhere/git",
}  # fmt: skip


@pytest.fixture
def small(tiny: Path) -> Path:
    """The tiny course without its last chapter, which is quicker to build."""
    file = tiny / "checkpoints" / "course.toml"
    file.write_text(file.read_text("utf-8").replace('["00", "01", "02"]', '["00", "01"]'), "utf-8")
    return tiny


def odd_home(folder: Path) -> Path:
    """A home directory whose git configuration gets in the way wherever it can."""
    hooks = folder / "template" / "hooks"
    hooks.mkdir(parents=True)
    (folder / "hooks").mkdir()
    for name in ("post-checkout", "reference-transaction", "fsmonitor", "gpg", "pre-commit"):
        for place in (hooks, folder / "hooks"):
            (place / name).write_text("#!/bin/sh\nexit 1\n", "utf-8")
            (place / name).chmod(0o755)
    (folder / "attributes").write_text("* text eol=crlf\n", "utf-8")
    (folder / "excludes").write_text("*\n", "utf-8")
    (folder / ".gitconfig").write_text(ODD_CONFIG.format(home=folder), "utf-8")
    return folder


def ids_of(history: History) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    return history.checkpoints, history.stages, history.practices


def cache_entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "history").iterdir())


def test_odd_configuration_gives_the_same_ids(tmp_path, tiny, own_cache, tiny_history, course):
    """A copy elsewhere, under a git configuration and variables of the oddest kind, gives the same commit ids."""
    home = odd_home(tmp_path / "home")
    ran = course("--course", tiny, "checkpoint", "02", "--json", env={"HOME": str(home), **ODD_VARIABLES})
    assert ran.status == 0, ran.err
    assert ran.document["target"] == tiny_history.checkpoints["02"]
    built = open_history(load_course(tiny))
    assert built.repository.is_relative_to(own_cache)
    assert ids_of(built) == ids_of(tiny_history)


def test_history_holds_every_checkpoint_stage_and_start(tiny_course: Course, tiny_history, git):
    """Each checkpoint is a commit and a tag, each practice start a ref a language, each stage a ref; trees are exact."""
    repository, course = tiny_history.repository, tiny_course
    project = project_files(course)
    for chapter in course.chapters:
        commit = tiny_history.checkpoints[chapter.id]
        assert git(repository, "rev-parse", f"refs/tags/checkpoint-{chapter.id}") == [commit]
        assert tree_of(repository, commit) == project | target_tree(course, chapter)
    for chapter in course.practice_chapters:
        for language in course.manifest.languages:
            commit = tiny_history.practices[f"{chapter.id}/{language}"]
            assert git(repository, "rev-parse", f"refs/heads/practice/{chapter.id}/{language}") == [commit]
            files = practice_tree(course, chapter) | project_files(course, chapter, language)
            assert tree_of(repository, commit) == files
            parent = tiny_history.checkpoints[course.parent(chapter).id]
            assert git(repository, "rev-list", "--parents", "-1", commit) == [f"{commit} {parent}"]
        for lab in chapter.manifest.lab:
            commit = tiny_history.stages[lab.id]
            assert git(repository, "rev-parse", f"refs/stages/{lab.id}") == [commit]
            assert tree_of(repository, commit) == project | stage_tree(course, chapter, lab.id)
    assert git(repository, "fsck", "--strict", "--no-dangling") == []


def tree_of(repository: Path, commit: str) -> dict[str, bytes]:
    packed = subprocess.run(
        ["git", "-C", str(repository), "archive", "--format=tar", commit], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        return {one.name: files.extractfile(one).read() for one in files if one.isfile()}


def test_commits_have_fixed_authors_and_dates(tiny_history, git):
    """Nothing of the machine is in a commit: author, committer and dates are the course's own."""
    lines = git(tiny_history.repository, "log", "--all", "--format=%an <%ae>|%cn <%ce>|%aI|%cI")
    who = "Course <course@course.invalid>"
    assert {tuple(line.split("|")[:2]) for line in lines} == {(who, who)}
    dates = [line.split("|")[2:] for line in lines]
    assert all(author == committer and author.startswith("2026-01-0") for author, committer in dates)


def test_leftovers_change_no_id(tiny, tiny_course: Course):
    """Bytecode, editor files and installer leftovers anywhere in the contents leave every id as it is."""
    names = [
        "index.py~",
        ".#index.py",
        "#index.py#",
        ".index.py.swp",
        "index.py.orig",
        ".DS_Store",
        "._index.py",
    ]
    names += ["__pycache__/index.cpython-311.pyc", "findex.egg-info/PKG-INFO", "test_x.py~"]
    for folder in [path for path in tiny.rglob("*") if path.is_dir()]:
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("left over\n", "utf-8")
    assert content_hash(load_course(tiny)) == content_hash(tiny_course)


def test_line_ends_of_a_checkout_change_no_id(tiny, tiny_course: Course):
    """A checkout with CRLF line ends gives the same ids."""
    for file in tiny.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert content_hash(load_course(tiny)) == content_hash(tiny_course)


def test_every_content_file_counts_and_no_other(tiny):
    """Any file that reaches a tree changes the history; handouts, hints, quizzes, faults, demos and pins don't."""
    (tiny / "checkpoints" / "history.toml").write_text("format = 1\n\n[checkpoints]\n", "utf-8")
    before = content_hash(load_course(tiny))
    for file in [path for path in sorted(tiny.rglob("*")) if path.is_file()]:
        data = file.read_bytes()
        file.write_bytes(data + b"\n# changed\n")
        path = file.relative_to(tiny)
        beside = path.parts[0] == "labs" and not (path.name.startswith("test_") or path.name == "lab.toml")
        counts = path.parts[0] in CONTENT_FOLDERS and not (beside or path.name == "history.toml")
        assert (content_hash(load_course(tiny)) != before) == counts, path
        file.write_bytes(data)


def test_changed_content_changes_the_ids_from_its_chapter_on(small, tiny_history):
    """A chapter's content changes its own checkpoint and what comes after it, never what comes before."""
    before = open_history(load_course(small))
    target = small / "solutions" / "01" / "src" / "findex" / "index.py"
    target.write_text(target.read_text("utf-8") + "\n# one more line\n", "utf-8")
    after = open_history(load_course(small))
    assert after.checkpoints["00"] == before.checkpoints["00"]
    assert after.checkpoints["01"] != before.checkpoints["01"]
    assert after.practices == before.practices


def start_builder(folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "course", "--course", str(folder), "checkpoint", "01", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )


def test_builders_at_once_agree(small, own_cache):
    """Two builders of the same history don't disturb each other: same ids, one cache entry, nothing left over."""
    builders = [start_builder(small) for _ in range(2)]
    outputs = [builder.communicate(timeout=300) for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0], outputs
    targets = {json.loads(out)["target"] for out, _ in outputs}
    assert len(targets) == 1
    assert cache_entries(own_cache) == [content_hash(load_course(small))]


def test_threads_at_once_agree(small, own_cache, monkeypatch):
    """Threads of one process may build at once too, and GIT_* variables of the user reach none of them."""
    monkeypatch.setenv("GIT_DIR", "/dev/null/nowhere")
    courses = [load_course(small) for _ in range(2)]
    before = Path.cwd()
    with ThreadPoolExecutor(2) as pool:
        histories = list(pool.map(open_history, courses))
    assert Path.cwd() == before
    assert len({json.dumps(ids_of(history)) for history in histories}) == 1
    assert cache_entries(own_cache) == [content_hash(courses[0])]


def test_killed_builders_leave_a_cache_that_heals(small, own_cache):
    """Whenever a builder is killed, the next run gives the right ids and sweeps what was left."""
    dice = random.Random(7)
    for _ in range(5):
        builder = start_builder(small)
        while builder.poll() is None and not list(own_cache.glob("history/.course-partial-*")):
            time.sleep(0.005)
        time.sleep(dice.uniform(0, 0.7))
        builder.kill()
        builder.communicate()
    history = open_history(load_course(small))
    assert cache_entries(own_cache) == [content_hash(load_course(small))]
    assert Git(history.repository).lines("rev-parse", "refs/tags/checkpoint-01") == [
        history.checkpoints["01"]
    ]
    assert Git(history.repository).lines("fsck", "--no-dangling") == []


def empty_ids(entry: Path) -> None:
    (entry / "ids.json").write_bytes(b"")


def cut_ids(entry: Path) -> None:
    (entry / "ids.json").write_bytes((entry / "ids.json").read_bytes()[:40])


def remove_repository(entry: Path) -> None:
    shutil.rmtree(entry / "repo.git")


def remove_ref(entry: Path) -> None:
    next(entry.glob("repo.git/refs/heads/practice/01/en")).unlink()


def cut_pack(entry: Path) -> None:
    pack = next(entry.glob("repo.git/objects/pack/*.pack"))
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:100])


def put_a_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("no directory\n", "utf-8")


@pytest.mark.parametrize("damage", [empty_ids, cut_ids, remove_repository, remove_ref, cut_pack, put_a_file])
def test_damaged_cache_heals(damage, small, own_cache, cached, call, tmp_path):
    """A cache entry of which something is missing or cut off is built anew; nobody is bothered."""
    course = load_course(small)
    whole = cached(course)
    entry = own_cache / "history" / content_hash(course)
    shutil.copytree(whole, entry)
    damage(entry)
    ran = call("--course", small, "practice", "01", tmp_path / "w")
    assert (ran.status, ran.err) == (0, "")
    assert (entry / "ids.json").read_bytes() == (whole / "ids.json").read_bytes()
    assert cache_entries(own_cache) == [entry.name]


def test_whole_cache_is_used_as_it_is(small, own_cache, cached, call, tmp_path):
    """A warm cache is read and never written: its files keep their times, and no partial folder appears."""
    entry = own_cache / "history" / content_hash(load_course(small))
    shutil.copytree(cached(load_course(small)), entry)
    before = {path: path.stat().st_mtime_ns for path in own_cache.rglob("*")}
    assert call("--course", small, "practice", "01", tmp_path / "w").status == 0
    assert {path: path.stat().st_mtime_ns for path in own_cache.rglob("*")} == before


def test_engine_that_builds_otherwise_builds_anew(tiny_course: Course, tmp_path, program):
    """The cache is keyed by the building code too, so that an older engine's entry never serves a newer one."""
    engine = tmp_path / "engine"
    source = Path(content_hash.__code__.co_filename).parent
    shutil.copytree(source, engine / "course", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import sys; from pathlib import Path; from course.catalog import load_course\n"
        "from course.history import content_hash; print(content_hash(load_course(Path(sys.argv[1]))))"
    )

    def key() -> str:
        ran = program(
            [sys.executable, "-c", code, tiny_course.root], cwd=engine, env={"PYTHONPATH": str(engine)}
        )
        return ran.out.strip()

    assert key() == content_hash(tiny_course)
    (engine / "course" / "stages.py").write_text((source / "stages.py").read_text("utf-8") + "\n", "utf-8")
    assert key() != content_hash(tiny_course)


def test_cache_that_is_a_file_is_told(tiny_folder, call, tmp_path, monkeypatch):
    """A cache folder that can't be made is one sentence, with the variable that names another; status 3."""
    (tmp_path / "file").write_text("x", "utf-8")
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "file"))
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "w")
    assert ran.status == 3
    assert ran.told[0].startswith(
        f"course: The cache folder {tmp_path / 'file' / 'history'} can't be written: "
    )
    assert "COURSE_CACHE_DIR" in ran.told[1]
    assert not (tmp_path / "w").exists()


def test_relative_cache_folder_is_meant_from_here(small, call, tmp_path, monkeypatch):
    """COURSE_CACHE_DIR may be relative to the current directory."""
    monkeypatch.setenv("COURSE_CACHE_DIR", "here/cache")
    assert call("--course", small, "practice", "01", "w", cwd=tmp_path).status == 0
    assert (tmp_path / "w" / "src").is_dir()
    assert cache_entries(tmp_path / "here" / "cache") == [content_hash(load_course(small))]


def test_interrupted_builder_leaves_nothing(small, own_cache):
    """Ctrl-C while the history is built ends with status 130 and one word, and leaves no partial folder."""
    builder = start_builder(small)
    while builder.poll() is None and not list(own_cache.glob("history/.course-partial-*")):
        time.sleep(0.005)
    builder.send_signal(signal.SIGINT)
    _, told = builder.communicate()
    assert (builder.returncode, told.decode().strip()) == (130, "course: interrupted")
    assert cache_entries(own_cache) == []
