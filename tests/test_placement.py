"""Placement: a new directory where the user wants it, as a whole or not at all."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from course.catalog import load_course
from course.errors import InputError
from course.history import content_hash
from course.leftovers import partial_name
from course.placement import Destination, check_destination, place

PLACES = {
    "simple": "mywork",
    "trailing slash": "mywork/",
    "missing parents": "a/b/c/mywork",
    "spaces": "my work/of  today",
    "unicode": "练习/Übung-é-🦀",
    "newline": "two\nlines",
    "quotes": 'it\'s "mine" $HOME `x` \\',
    "leading dash": "-rf",
    "inner dash": "-x/--help",
    "dots": "a/./../mywork",
    "glob": "[a]*?",
    "longest name": "n" * 255,
    "control signs": "bell\x07and\x1b[31mred",
    "no unicode": b"byte-\xff-name",
}
KILLED_AT_MOVE = """
import os, shutil, signal, sys
from pathlib import Path

left, rename = int(sys.argv.pop(1)), Path.rename

def count(self, target):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return rename(self, target)

def die(*args, **more):
    os.kill(os.getpid(), signal.SIGKILL)

Path.rename, shutil.rmtree = count, die
from course.cli import main
main()
"""


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_whole(folder: Path) -> bool:
    """Whether a practice is complete: its own git finds nothing missing, changed or damaged."""
    git = ["git", "-C", str(folder), "-c", "safe.directory=*"]
    status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=False)
    check = subprocess.run([*git, "fsck", "--strict", "--no-dangling"], capture_output=True, check=False)
    return (status.returncode, status.stdout, check.returncode) == (0, b"", 0)


@pytest.fixture
def make(call, tiny_folder, tiny_history, tmp_path):
    """Make a practice of the tiny course at a destination, from `cwd`."""

    def run(*destination, cwd=tmp_path):
        return call("--course", tiny_folder, "practice", "02", *destination, cwd=cwd)

    return run


@pytest.fixture
def making(tiny_folder, tiny_history, shared_cache):
    """Start the same in a child."""

    def start(destination, cwd, program=("-m", "course"), **options):
        command = [sys.executable, *program, "--course", str(tiny_folder), "practice", "02", str(destination)]
        return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    return start


@pytest.mark.parametrize("case", PLACES)
def test_any_name_is_a_destination(case, make, tmp_path):
    """Whatever a name may hold, the practice is made there, nothing else is, and the printed commands run."""
    name = os.fsdecode(PLACES[case])
    made = make("--json", "--", name)
    assert made.status == 0, made.err
    folder = Path(os.path.normpath(tmp_path / name))
    assert is_whole(folder)
    assert made.document["directory"] == str(folder)
    assert entries(tmp_path) == [folder.relative_to(tmp_path).parts[0]]
    way = made.document["next"][0]
    assert "\n" not in way
    went = subprocess.run(["bash", "-c", f"{way} && pwd -P"], cwd=tmp_path, capture_output=True, check=True)
    assert os.fsdecode(went.stdout) == f"{folder}\n"


def test_destination_behind_links_is_resolved(make, tmp_path):
    """Links in the path, a link to an empty directory and an empty directory itself are fine; the links stay."""
    for name in ("real", "empty", "target"):
        (tmp_path / name).mkdir()
    (tmp_path / "parent").symlink_to("real")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for given, folder in (
        ("parent/w", "real/w"),
        ("empty", "empty"),
        ("link", "target"),
        ("parent/../up", "up"),
    ):
        assert make(given).status == 0
        assert is_whole(tmp_path / folder)
    assert (tmp_path / "link").is_symlink()
    assert entries(tmp_path) == ["empty", "link", "parent", "real", "target", "up"]


def test_existing_directory_keeps_its_mode(make, tmp_path):
    """An empty directory that the user made private stays private."""
    (tmp_path / "w").mkdir(mode=0o700)
    assert make("w").status == 0
    assert (tmp_path / "w").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("given", [".", "./", "../here", ""])
def test_empty_current_directory_is_filled_in_place(given, make, tmp_path):
    """`.` when empty is filled, not replaced: the shell that stands in it stays there; "" is no destination."""
    here = tmp_path / "here"
    here.mkdir()
    inode = here.stat().st_ino
    made = make(given, cwd=here)
    if not given:
        assert (made.status, entries(here)) == (2, [])
        return
    assert made.status == 0, made.err
    assert here.stat().st_ino == inode
    assert is_whole(here)
    assert "cd " not in made.out
    assert not [name for name in entries(here) if name.startswith(".course-partial")]


def refused(tmp_path: Path, practice: Path) -> dict[str, tuple[str, str]]:
    """Destinations that are refused, with words of the sentence that says why."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine\n", "utf-8")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / ".keep").write_text("", "utf-8")
    (tmp_path / "file").write_text("mine\n", "utf-8")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to_file").symlink_to("file")
    (tmp_path / "to_full").symlink_to("full")
    return {
        "full": ("full is not empty", "Name a new directory"),
        "hidden": ("hidden is not empty", "Name a new directory"),
        "to_full": ("to_full is not empty", "Name a new directory"),
        ".": (". is not empty", "Name a new directory"),
        "/": ("/ is not empty", "Name a new directory"),
        "file": ("file is a file", "Name a new directory"),
        "file/": ("file/ is a file", "Name a new directory"),
        "to_file": ("to_file is a file", "Name a new directory"),
        "file/inside": (f"{tmp_path / 'file'} is a file", "Name another directory"),
        "dangling": ("dangling is a link to something that is not there", "Name another directory"),
        "dangling/inside": (
            f"{tmp_path / 'dangling'}, which is a link to something",
            "Name another directory",
        ),
        "loop": ("loop", "Name another directory"),
        "n" * 256: ("can't be a directory: File name too long", "Name another directory"),
        "nul\0": ("NUL", "Name a new directory"),
        str(practice): (f"{practice} is not empty", "Name a new directory"),
        f"{practice}/src/x": (f"lies inside another practice, {practice}", "../mywork"),
        f"{practice}/.course/x": (f"lies inside another practice, {practice}", "../mywork"),
    }


def snapshot(folder: Path) -> dict[str, object]:
    def content(path: Path) -> object:
        return str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None

    return {str(path): content(path) for path in sorted(folder.rglob("*")) if ".git" not in path.parts}


def test_taken_destination_is_refused_untouched(make, tmp_path_factory, tmp_path, call, tiny_folder):
    """What is there already is refused with status 2 and what to do instead, and nothing is touched."""
    practice = tmp_path_factory.mktemp("other") / "practice"
    assert call("--course", tiny_folder, "practice", "01", practice).status == 0
    cases = refused(tmp_path, practice)
    before = snapshot(tmp_path) | snapshot(practice)
    for given, (words, hint) in cases.items():
        ran = make(given)
        assert ran.status == 2, given
        assert words in ran.told[0], given
        assert hint in ran.told[1], given
        assert len(ran.told) == 2
        assert snapshot(tmp_path) | snapshot(practice) == before, given


@pytest.mark.parametrize(
    "folder", ["labs", "labs/02", "starters", "solutions/x/y", "checkpoints", "tests", "Labs", ".git"]
)
def test_courses_own_folders_are_refused(folder, tiny, call):
    """Inside the course's own folders no practice is made; the top of the checkout is offered instead."""
    ran = call("--course", tiny, "practice", "02", f"{folder}/mywork", cwd=tiny)
    assert ran.status == 2
    assert f"lies inside the course's own folder {tiny / folder.split('/')[0]}" in ran.told[0]
    assert str(tiny / "mywork") in ran.told[1]
    assert not (tiny / folder / "mywork").exists()


def test_top_of_the_checkout_is_fine(tiny, call):
    """The top of a checkout may hold a practice."""
    assert call("--course", tiny, "practice", "02", "mywork", cwd=tiny).status == 0
    assert is_whole(tiny / "mywork")


def test_flagship_checkout_ignores_mywork(program):
    """In this repository `/mywork` is git-ignored, so that a practice there is never added by mistake."""
    root = Path(__file__).resolve().parent.parent
    lines = (root / ".gitignore").read_text("utf-8").splitlines()
    assert "/mywork/" in lines


def test_outer_repository_is_told_in_one_line(make, program, tmp_path):
    """Where the destination lies in another repository, one line says what `git add` there would do."""
    outer = tmp_path / "outer"
    outer.mkdir()
    assert program(["git", "init", "-q", outer]).status == 0
    made = make("deep/w", cwd=outer)
    notes = [line for line in made.out.splitlines() if "note" in line]
    assert len(notes) == 1
    assert str(outer) in notes[0]
    assert "`git add`" in notes[0]
    assert "note" not in make(tmp_path / "free").out


@pytest.fixture
def open_folder():
    """A directory that any user may enter, for a child that is not root."""
    folder = Path(tempfile.mkdtemp(prefix="course-test-")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def nobody(tiny, open_folder, cached):
    """Make practices as a user who is not root and owns nothing, with a warm cache that root built."""
    course = shutil.copytree(tiny, open_folder / "tiny")
    shutil.copytree(
        cached(load_course(tiny)), open_folder / "cache" / "history" / content_hash(load_course(tiny))
    )
    less = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.getuid() == 0 else []
    if less and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv may write anywhere")
    if subprocess.run([*less, sys.executable, "-c", ""], capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may run this interpreter")

    def run(destination: Path, cache: str = "cache"):
        command = [*less, sys.executable, "-m", "course", "--course", course, "practice", "02", destination]
        env = {**os.environ, "COURSE_CACHE_DIR": str(open_folder / cache), "HOME": "/nonexistent"}
        ran = subprocess.run(command, env=env, cwd="/", capture_output=True, check=False)
        return ran.returncode, ran.stderr.decode().splitlines()

    return run


def test_unwritable_place_is_told(nobody, open_folder):
    """Where the user may not write, one sentence says so: status 3, and nothing is made."""
    (open_folder / "locked").mkdir(mode=0o555)
    status, told = nobody(open_folder / "locked" / "w")
    assert status == 3
    assert told[0] == f"course: {open_folder / 'locked' / 'w'} can't be made: Permission denied."
    assert told[1:] == ["Choose a place that you may write to."]
    assert entries(open_folder / "locked") == []


def test_own_directory_in_a_locked_parent_is_filled(nobody, open_folder):
    """An empty directory of the user's own is filled where its parent allows no other in its place."""
    mine = open_folder / "locked" / "mine"
    mine.mkdir(parents=True)
    mine.chmod(0o777)
    mine.parent.chmod(0o555)
    assert nobody(mine) == (0, [])
    assert is_whole(mine)


def test_unwritable_cache_is_told(nobody, open_folder):
    """A cache folder that may not be written is one sentence that names the variable for another one."""
    (open_folder / "free").mkdir()
    (open_folder / "free").chmod(0o777)
    (open_folder / "locked").mkdir(mode=0o555)
    status, told = nobody(open_folder / "free" / "w", cache="locked/cache")
    assert status == 3
    folder = open_folder / "locked" / "cache" / "history"
    assert told[0] == f"course: The cache folder {folder} can't be written: Permission denied."
    assert "COURSE_CACHE_DIR" in told[1]
    assert entries(open_folder / "free") == []


@pytest.fixture
def little_disk(tmp_path):
    """A file system of a given size."""
    mounted = []

    def mount(size: str) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip("only root can mount a small disk")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("size", ["16k", "40k", "72k"])
@pytest.mark.parametrize("given", ["a/w", "."])
def test_full_disk_is_told(size, given, making, little_disk):
    """A disk that fills up while the practice is made: one sentence, status 3, and nothing of it left."""
    disk = little_disk(size)
    child = making(given, disk)
    out, told = child.communicate(timeout=300)
    assert child.returncode == 3, (out, told)
    assert told.decode().splitlines()[0].startswith("course: The disk is full: ")
    assert told.decode().splitlines()[1:] == ["Make room, then run this again."]
    assert entries(disk) == []


def test_full_disk_of_the_cache_is_told(tiny_folder, little_disk, call, tmp_path, monkeypatch):
    """The same holds for the disk that the cache lies on."""
    disk = little_disk("64k")
    monkeypatch.setenv("COURSE_CACHE_DIR", str(disk / "cache"))
    ran = call("--course", tiny_folder, "practice", "02", tmp_path / "w")
    assert ran.status == 3
    assert len(ran.told) == 2
    assert "disk is full" in ran.told[0]
    assert entries(disk / "cache" / "history") == []
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("warm", [True, False])
def test_missing_git_is_told(warm, tiny_folder, tiny_history, tmp_path, course, monkeypatch):
    """Without git on PATH: one sentence, status 3, nothing left, whether the cache is warm or cold."""
    (tmp_path / "bin").mkdir()
    env = {"PATH": str(tmp_path / "bin")} | ({} if warm else {"COURSE_CACHE_DIR": str(tmp_path / "cache")})
    ran = course("--course", tiny_folder, "practice", "02", tmp_path / "a" / "w", env=env)
    assert ran.status == 3
    assert ran.told == ["course: git was not found on PATH.", "Install git, then run this again."]
    assert entries(tmp_path) == (["bin"] if warm else ["bin", "cache"])
    assert warm or entries(tmp_path / "cache" / "history") == []


def settle(folder: Path) -> None:
    """Wait until a git that outlived its killed parent writes no more."""
    before = None
    while (now := [(str(path), path.lstat().st_size) for path in folder.rglob("*")]) != before:
        before = now
        time.sleep(0.03)


def test_killed_at_any_moment_leaves_all_or_nothing(making, make, tmp_path):
    """Killed at twenty random moments, the destination is absent or whole; the next run works and sweeps up."""
    dice = random.Random(12)
    seen = set()
    for turn in range(20):
        parent = tmp_path / str(turn)
        parent.mkdir()
        child = making("w", parent)
        while child.poll() is None and not list(parent.glob(".course-partial-*")):
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.12))
        child.kill()
        child.communicate()
        settle(parent)
        there = (parent / "w").exists()
        assert not there or is_whole(parent / "w")
        seen.add((there, bool(list(parent.glob(".course-partial-*")))))
        again = make("w2" if there else "w", cwd=parent)
        assert again.status == 0, again.err
        assert entries(parent) == (["w", "w2"] if there else ["w"])
        assert is_whole(parent / "w")
    assert (False, True) in seen


@pytest.mark.parametrize("moves", [0, 1, 4, 9, 10])
def test_killed_fill_is_swept_by_the_next(moves, making, make, tmp_path):
    """Killed between any two moves of a fill in place, what was moved is recognised and swept by the next run."""
    here = tmp_path / "here"
    here.mkdir()
    child = making(".", here, program=("-c", KILLED_AT_MOVE, str(moves)))
    child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL
    assert not (here / ".git").exists()
    assert len(entries(here)) == moves + 1
    again = make(".", cwd=here)
    assert again.status == 0, again.err
    assert is_whole(here)
    assert not list(here.glob(".course-partial-*"))


def test_killed_fill_keeps_what_the_user_wrote(making, make, tmp_path):
    """A file that the user changed or added after the kill is never removed; the folder is refused as not empty."""
    here = tmp_path / "here"
    here.mkdir()
    making(".", here, program=("-c", KILLED_AT_MOVE, "10")).communicate(timeout=300)
    (here / "README.md").write_text("mine\n", "utf-8")
    (here / "src" / "own.py").write_text("mine\n", "utf-8")
    ran = make(".", cwd=here)
    assert ran.status == 2
    assert "not empty" in ran.told[0]
    assert (here / "README.md").read_text("utf-8") == "mine\n"
    assert (here / "src" / "own.py").read_text("utf-8") == "mine\n"
    assert entries(here) == ["README.md", "src"]


def test_killed_fill_in_a_repository_of_the_users_is_left_alone(making, make, tmp_path, program):
    """Where the user has made a repository of what a killed fill left, nothing of it is taken away."""
    here = tmp_path / "here"
    here.mkdir()
    making(".", here, program=("-c", KILLED_AT_MOVE, "9")).communicate(timeout=300)
    assert program(["git", "init", "-q", here]).status == 0
    before = entries(here)
    assert make(".", cwd=here).status == 2
    assert entries(here) == [name for name in before if not name.startswith(".course-partial-")]


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_killed_between_the_last_steps_leaves_a_known_name_only(moves, making, make, tmp_path):
    """Missing parents appear together with the practice: killed before that, only a partial folder is there."""
    making("a/b/w", tmp_path, program=("-c", KILLED_AT_MOVE, str(moves))).communicate(timeout=300)
    names = entries(tmp_path)
    if moves < 2:
        assert len(names) == 1
        assert names[0].startswith(".course-partial-practice-")
    else:
        assert is_whole(tmp_path / "a" / "b" / "w")
    assert make("x").status == 0
    assert [name for name in entries(tmp_path) if name.startswith(".course-partial-")] == []


def test_fill_killed_at_its_very_end_is_a_practice(making, make, tmp_path, program):
    """Where every entry is in, the practice is whole: nothing of it is taken back, whatever the learner did since."""
    here = tmp_path / "here"
    here.mkdir()
    making(".", here, program=("-c", KILLED_AT_MOVE, "11")).communicate(timeout=300)
    assert list(here.glob(".course-partial-*"))
    assert is_whole(here)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x"]
    assert program([*git, "commit", "-q", "--allow-empty", "-m", "my work"], cwd=here).status == 0
    ran = make(".", cwd=here)
    assert ran.status == 2
    assert is_whole(here)
    log = program(["git", "log", "-1", "--format=%s"], cwd=here)
    assert log.out == "my work\n"


def test_interrupted_practice_leaves_nothing(making, tmp_path):
    """Ctrl-C ends with status 130 and leaves nothing at all."""
    for turn in range(3):
        child = making("a/w", tmp_path, start_new_session=True)
        while child.poll() is None and not list(tmp_path.glob(".course-partial-*")):
            time.sleep(0.001)
        time.sleep(0.01 * turn)
        os.killpg(child.pid, signal.SIGINT)
        _, told = child.communicate(timeout=300)
        if child.returncode == 0:
            shutil.rmtree(tmp_path / "a")
            continue
        assert (child.returncode, told.decode().strip()) == (130, "course: interrupted")
        assert entries(tmp_path) == []


def destination(folder: Path) -> Destination:
    return check_destination(str(folder), folder.parent)


def placed_together(*folders: Path) -> list[BaseException | None]:
    """Place one file at each folder, all built before any is put in place."""
    meeting = threading.Barrier(len(folders))
    ends: list[BaseException | None] = [None] * len(folders)

    def run(index: int, where: Destination) -> None:
        def build(tree: Path) -> None:
            (tree / "file").write_text(f"{index}\n", "utf-8")
            meeting.wait(60)

        try:
            place(where, build)
        except InputError as error:
            ends[index] = error

    runs = [threading.Thread(target=run, args=(n, destination(f))) for n, f in enumerate(folders)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    return ends


def test_same_destination_twice_at_once_has_one_winner(tmp_path):
    """Two runs at one destination: one puts its directory there, the other is told and changes nothing."""
    ends = placed_together(tmp_path / "a" / "w", tmp_path / "a" / "w")
    assert sorted(end is None for end in ends) == [False, True]
    assert re.search("was made by someone else meanwhile", str(next(end for end in ends if end)))
    assert (tmp_path / "a" / "w" / "file").read_text("utf-8") == f"{ends.index(None)}\n"
    assert entries(tmp_path) == ["a"]
    assert entries(tmp_path / "a") == ["w"]


def test_neighbours_at_once_share_their_new_parents(tmp_path):
    """Two runs into the same missing parents both arrive."""
    folders = [tmp_path / "a" / "b" / name for name in ("x", "y", "b")]
    assert placed_together(*folders) == [None, None, None]
    assert [(folder / "file").is_file() for folder in folders] == [True, True, True]
    assert entries(tmp_path) == ["a"]


def test_failed_build_leaves_nothing(tmp_path):
    """Whatever goes wrong while the directory is built, neither it nor its new parents are there afterwards."""

    def build(tree: Path) -> None:
        (tree / "file").write_text("x", "utf-8")
        raise ValueError("on purpose")

    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "a" / "b" / "w", tmp_path / "empty"):
        with pytest.raises(ValueError, match="on purpose"):
            place(destination(folder), build)
    assert entries(tmp_path) == ["empty"]
    assert entries(tmp_path / "empty") == []


def test_partials_of_the_living_are_kept(make, tmp_path):
    """Only what dead processes left is swept: a running process of this machine and other machines keep theirs."""
    mine = partial_name("practice")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        "living": mine.replace(f"-{os.getpid()}-", f"-{os.getppid()}-") + "x",
        "dead": mine.replace(f"-{os.getpid()}-", f"-{dead.pid}-") + "x",
        "elsewhere": re.sub("practice-[0-9a-f]+-", "practice-ffff-", mine).replace(
            str(os.getpid()), str(dead.pid)
        )
        + "x",
        "other work": mine.replace("practice", "history").replace(f"-{os.getpid()}-", f"-{dead.pid}-") + "x",
    }
    for name in names.values():
        (tmp_path / name).mkdir()
    assert make("w").status == 0
    assert entries(tmp_path) == sorted([name for key, name in names.items() if key != "dead"] + ["w"])
