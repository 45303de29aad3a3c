"""`course reset`: the starter is back, and not a line of the learner's is lost, whatever kills it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course.leftovers import _host

NAME = "src/findex/index.py"
MINE = "mine = '我的' \r\n\tno newline at the end"

KILLED = """
import os, signal, sys
from course.cli import run

moment, modules = int(sys.argv[1]), tuple(sys.argv[2].split(","))
seen = 0

def watch(frame, event, argument):
    global seen
    if frame.f_globals.get("__name__", "").startswith(modules):
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), signal.SIGKILL)

sys.setprofile(watch)
status = run(sys.argv[3:])
sys.setprofile(None)
print(f"moments {seen}")
sys.exit(status)
"""


@pytest.fixture
def file(practice) -> Path:
    return practice / NAME


@pytest.fixture
def starter(file) -> bytes:
    return file.read_bytes()


def state(practice: Path) -> dict[str, bytes]:
    """The learner's HEAD, branches, stash, index, configuration and other files, byte by byte."""
    found = {}
    for path in practice.rglob("*"):
        name = path.relative_to(practice).as_posix()
        objects = name.startswith((".git/objects/", ".git/refs/course/kept/"))
        if path.is_file() and not objects and name != NAME:
            found[name] = path.read_bytes()
    return found


def kept_data(practice, git, ref="refs/course/kept/1", name=NAME):
    """The bytes of a file in a kept commit."""
    return subprocess.run(
        ["git", "cat-file", "blob", f"{ref}:{name}"], cwd=practice, capture_output=True, check=True
    ).stdout


def way_back(out):
    """The command that was told."""
    return out.splitlines()[-1].strip()


def test_what_was_there_is_kept_and_comes_back(practice, course, program, git, file, starter):
    """The file is the starter's again; the told id and command bring back each byte of what was there."""
    file.write_bytes(MINE.encode())
    before = state(practice)
    answer = course("reset", "--yes", cwd=practice)
    assert (answer.status, answer.err) == (0, "")
    assert file.read_bytes() == starter
    assert state(practice) == before
    (commit,) = git(practice, "rev-parse", "refs/course/kept/1")
    assert answer.out.splitlines() == [
        f"Back to the starter: {NAME}",
        f"What was there is kept as commit {commit[:12]} (refs/course/kept/1). To get it back:",
        f"  git restore --source=refs/course/kept/1 -- {NAME}",
    ]
    assert git(practice, "rev-parse", "refs/course/kept/1^") == git(practice, "rev-parse", "HEAD")
    assert git(practice, "diff", "--name-only", "HEAD", "refs/course/kept/1") == [NAME]
    assert program(["sh", "-c", way_back(answer.out)], cwd=practice).status == 0
    assert file.read_bytes() == MINE.encode()


def test_starter_has_nothing_to_do(practice, call, git, starter):
    """Nothing is asked, kept or written where nothing differs."""
    answer = call("reset", cwd=practice)
    assert (answer.status, answer.out) == (0, f"Nothing to do: {NAME} is the starter already.\n")
    assert git(practice, "for-each-ref", "refs/course/kept") == []


def test_nobody_to_ask_is_refused(practice, call, git, file):
    """Without a terminal it takes --yes, with --json too, and nothing is changed."""
    file.write_text(MINE)
    for arguments in (["reset"], ["reset", "--json"], ["reset", NAME]):
        answer = call(*arguments, cwd=practice)
        assert (answer.status, answer.out) == (2, "")
        assert answer.told == [
            f"course: Nobody can be asked whether to put back {NAME}; nothing was changed.",
            "To do it without a question, add --yes.",
        ]
    assert file.read_text() == MINE.replace("\r\n", "\n")
    assert git(practice, "for-each-ref", "refs/course/kept") == []


@pytest.mark.parametrize(("answer", "goes_on"), [("y", True), ("yes", True), ("", False), ("n", False)])
def test_terminal_is_asked(practice, terminal, ended, file, starter, answer, goes_on):
    """Only yes goes on."""
    file.write_text("mine = 1\n")
    child = terminal("reset", cwd=practice)
    child.expect_exact(f"Back to the starter: {NAME}. What is there now is kept as a commit.")
    child.expect_exact("Go on? [y/N] ")
    child.sendline(answer)
    rest = ended(child)
    assert rest.status == 0
    assert (file.read_bytes() == starter) is goes_on
    assert ("Nothing was changed." in rest.out) is not goes_on


@pytest.mark.parametrize(("key", "status"), [("sendeof", 0), ("sendintr", 130)])
def test_leaving_the_question_changes_nothing(practice, terminal, ended, file, key, status):
    """Ctrl-D is no, Ctrl-C an interruption."""
    file.write_text("mine = 1\n")
    child = terminal("reset", cwd=practice)
    child.expect_exact("Go on? [y/N] ")
    assert ended(child, getattr(child, key)).status == status
    assert file.read_text() == "mine = 1\n"


def test_edit_while_asked_is_kept_too(practice, terminal, ended, git, file):
    """What counts is what lies there once the question is answered."""
    file.write_text("first = 1\n")
    child = terminal("reset", cwd=practice)
    child.expect_exact("Go on? [y/N] ")
    file.write_text("second = 2\n")
    child.sendline("y")
    assert ended(child).status == 0
    assert kept_data(practice, git) == b"second = 2\n"


@pytest.mark.parametrize("where", ["", "src", "src/findex", "tests"])
def test_files_are_named_as_the_user_sees_them(practice, course, program, file, starter, where):
    """FILE is relative to where the user is, and so is the command that brings it back."""
    here = practice / where
    file.write_text("mine = 1\n")
    answer = course("reset", "--yes", os.path.relpath(file, here), cwd=here)
    assert (answer.status, file.read_bytes()) == (0, starter)
    assert program(["sh", "-c", way_back(answer.out)], cwd=here).status == 0
    assert file.read_text() == "mine = 1\n"


def test_start_directory_gives_a_command_for_here(practice, course, program, file, starter, tmp_path):
    """With -C the way back runs from where the user is, odd signs in the path included."""
    odd = tmp_path / "my 'wörk' -x"
    practice.rename(odd)
    (odd / NAME).write_text("mine = 1\n")
    answer = course("-C", odd, "reset", "--yes", NAME, cwd=tmp_path)
    assert (answer.status, (odd / NAME).read_bytes()) == (0, starter)
    assert program(["sh", "-c", way_back(answer.out)], cwd=tmp_path).status == 0
    assert (odd / NAME).read_text() == "mine = 1\n"


@pytest.mark.parametrize(
    "name", ["tests/test_02_search.py", "src", ".", "nothing.py", "../outside.py", "/etc/passwd"]
)
def test_other_files_are_refused(practice, call, file, name):
    """What is no teaching file is named, with those there are; nothing is changed, the named ones neither."""
    file.write_text("mine = 1\n")
    answer = call("reset", "--yes", NAME, name, cwd=practice)
    assert (answer.status, answer.told) == (
        2,
        [
            f"course: {name} is not a teaching file of this practice; nothing was changed.",
            f"Those: {NAME}.",
        ],
    )
    assert file.read_text() == "mine = 1\n"


def test_outside_of_a_practice_is_refused(call, tiny_folder):
    """There is no starter to go back to elsewhere."""
    answer = call("reset", "--yes", cwd=tiny_folder)
    assert (answer.status, answer.told[0].endswith("is not inside a practice.")) == (2, True)


def test_json_tells_what_was_done(practice, call, git, file):
    """A program gets the files, the kept commit and the way back."""
    file.write_text("mine = 1\n")
    document = call("reset", "--yes", "--json", cwd=practice).document
    (commit,) = git(practice, "rev-parse", "refs/course/kept/1")
    assert document == {
        "format": 1,
        "kind": "reset",
        "files": [NAME],
        "changed": [NAME],
        "kept": commit,
        "ref": "refs/course/kept/1",
        "restore": f"git restore --source=refs/course/kept/1 -- {NAME}",
    }
    assert call("reset", "--yes", "--json", cwd=practice).document["changed"] == []


# What the learner's repository may be like


def detach(practice, git):
    git(practice, "checkout", "--quiet", "--detach")


def branch(practice, git):
    git(practice, "checkout", "--quiet", "-b", "other/branch")


def stage(practice, git):
    (practice / NAME).write_text("staged = 1\n")
    git(practice, "add", NAME)
    (practice / "tests/new.py").write_text("new = 1\n")
    git(practice, "add", "tests/new.py")


def commit_over(practice, git):
    (practice / NAME).write_text("committed = 1\n")
    git(practice, "commit", "--quiet", "-am", "mine")


def merge_half_way(practice, git):
    git(practice, "checkout", "--quiet", "-b", "theirs")
    commit_over(practice, git)
    git(practice, "checkout", "--quiet", "main")
    (practice / NAME).write_text("other = 1\n")
    git(practice, "commit", "--quiet", "-am", "other")
    with pytest.raises(Exception, match="merge"):
        git(practice, "merge", "theirs")


def untrack(practice, git):
    git(practice, "rm", "--quiet", "--cached", NAME)
    (practice / ".gitignore").write_text("*.py\n")


def unborn(practice, git):
    git(practice, "checkout", "--quiet", "--orphan", "empty")


def lose_head(practice, git):
    (practice / ".git/HEAD").write_text("0" * 39 + "1\n")


def lock_index(practice, git):
    (practice / ".git/index.lock").touch()


def set_odd_configuration(practice, git):
    for key, value in (
        ("core.autocrlf", "true"),
        ("core.hooksPath", str(practice / "hooks")),
        ("commit.gpgSign", "true"),
        ("core.bare", "true"),
    ):
        git(practice, "config", key, value)
    (practice / "hooks").mkdir()
    for hook in ("reference-transaction", "pre-commit", "post-checkout"):
        (practice / "hooks" / hook).write_text("#!/bin/sh\nexit 1\n")
        (practice / "hooks" / hook).chmod(0o755)


@pytest.mark.parametrize(
    "change",
    [
        detach,
        branch,
        stage,
        commit_over,
        merge_half_way,
        untrack,
        unborn,
        lose_head,
        lock_index,
        set_odd_configuration,
    ],
)
def test_repository_may_be_in_any_state(practice, course, git, file, starter, change):
    """The file goes back and is kept; branch, index, stash and other files are as they were."""
    change(practice, git)
    file.write_bytes(MINE.encode())
    before = state(practice)
    answer = course("reset", "--yes", cwd=practice)
    assert (answer.status, answer.err, file.read_bytes()) == (0, "", starter)
    assert kept_data(practice, git) == MINE.encode()
    assert state(practice) == before


def test_git_variables_lead_nowhere_else(practice, course, git, file, starter, tmp_path):
    """A stray GIT_DIR or index in the environment is not used."""
    file.write_text("mine = 1\n")
    env = {"GIT_DIR": str(tmp_path / "nowhere"), "GIT_INDEX_FILE": str(tmp_path / "index")}
    answer = course("reset", "--yes", cwd=practice, env=env)
    assert (answer.status, file.read_bytes()) == (0, starter)
    assert kept_data(practice, git) == b"mine = 1\n"
    assert not (tmp_path / "index").exists()


# What may lie where the teaching file should


def test_deleted_file_comes_back_and_nothing_is_kept(practice, call, git, file, starter):
    """Where nothing was there, there is nothing to keep."""
    file.unlink()
    answer = call("reset", "--yes", cwd=practice)
    assert (answer.status, file.read_bytes()) == (0, starter)
    assert answer.out.splitlines()[1] == "Nothing was there that had to be kept."
    assert git(practice, "for-each-ref", "refs/course/kept") == []


def test_deleted_folder_comes_back(practice, call, file, starter):
    """The folders that lead to a teaching file are made again."""
    (practice / "src").rename(practice / "away")
    assert call("reset", "--yes", cwd=practice).status == 0
    assert file.read_bytes() == starter


def test_link_is_kept_as_a_link_and_its_target_left(practice, course, program, file, starter, tmp_path):
    """The link itself is replaced; what it led to is not written."""
    target = tmp_path / "target.py"
    target.write_text("target = 1\n")
    file.unlink()
    file.symlink_to(target)
    answer = course("reset", "--yes", NAME, cwd=practice)
    assert (answer.status, file.is_symlink(), file.read_bytes()) == (0, False, starter)
    assert target.read_text() == "target = 1\n"
    assert program(["sh", "-c", way_back(answer.out)], cwd=practice).status == 0
    assert file.readlink() == target


def test_link_to_the_starter_itself_is_no_starter(practice, call, file, starter, tmp_path):
    """A link is replaced even where it leads to the same bytes; a dangling one too."""
    for target in ("copy.py", "nowhere.py"):
        (tmp_path / "copy.py").write_bytes(starter)
        file.unlink()
        file.symlink_to(tmp_path / target)
        assert call("reset", "--yes", cwd=practice).status == 0
        assert (file.is_symlink(), file.read_bytes()) == (False, starter)


def test_folder_in_its_place_is_kept_with_all_it_holds(practice, course, program, file, starter):
    """Files, programs, links and odd names inside come back."""
    file.unlink()
    (file / "deep/er").mkdir(parents=True)
    (file / "deep/er/a,b\n c.py").write_text("odd = 1\n")
    (file / "run").write_text("#!/bin/sh\n")
    (file / "run").chmod(0o755)
    (file / "link").symlink_to("deep")
    (file / ".gitignore").write_text("*\n")
    answer = course("reset", "--yes", cwd=practice)
    assert (answer.status, answer.err, file.read_bytes()) == (0, "", starter)
    assert program(["sh", "-c", way_back(answer.out)], cwd=practice).status == 0
    assert (file / "deep/er/a,b\n c.py").read_text() == "odd = 1\n"
    assert os.access(file / "run", os.X_OK)
    assert (file / "link").readlink() == Path("deep")
    assert (file / ".gitignore").read_text() == "*\n"


def test_what_git_cannot_keep_is_refused(practice, call, file):
    """A repository inside, a pipe: it is said, and nothing is changed."""
    file.unlink()
    (file / "inner/.git").mkdir(parents=True)
    inner = call("reset", "--yes", cwd=practice)
    (file / "inner/.git").rmdir()
    os.mkfifo(file / "inner/pipe")
    pipe = call("reset", "--yes", cwd=practice)
    assert (inner.status, pipe.status) == (2, 2)
    assert inner.told[0].endswith("/inner is a git repository of its own, which a commit can't keep.")
    assert pipe.told[0].endswith("/inner/pipe is neither a file nor a folder, and can't be kept.")
    assert (file / "inner/pipe").is_fifo()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_folder_that_is_none_is_refused(practice, call, file, tmp_path, kind):
    """Nothing is written through a link that stands for a folder of the practice."""
    outside = tmp_path / "outside"
    (practice / "src/findex").rename(outside)
    (outside / "index.py").write_text("mine = 1\n")
    if kind == "link":
        (practice / "src/findex").symlink_to(outside)
    else:
        (practice / "src/findex").write_text("a file\n")
    answer = call("reset", "--yes", cwd=practice)
    assert answer.status == 2
    assert answer.told[0].endswith(
        "/src/findex is no folder of the practice but a link or a file; nothing was changed."
    )
    assert (outside / "index.py").read_text() == "mine = 1\n"


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00binary", b"one\r\ntwo", b"\xef\xbb\xbfbom\n"])
def test_any_bytes_are_kept_as_they_are(practice, course, program, git, file, data):
    """No line end, encoding or emptiness is lost on the way there and back."""
    file.write_bytes(data)
    answer = course("reset", "--yes", cwd=practice)
    assert kept_data(practice, git) == data
    assert program(["sh", "-c", way_back(answer.out)], cwd=practice).status == 0
    assert file.read_bytes() == data


# Where the starter comes from


def test_starter_is_found_where_its_ref_is_gone(practice, call, git, file, starter):
    """Without refs/course/start the course's present starter is used, and that is said."""
    git(practice, "update-ref", "-d", "refs/course/start")
    file.write_text("mine = 1\n")
    answer = call("reset", "--yes", cwd=practice)
    assert (answer.status, file.read_bytes()) == (0, starter)
    assert answer.told == ["The practice's own starter commit is gone; the course's present starter is used."]
    assert kept_data(practice, git) == b"mine = 1\n"


def test_starter_is_the_practices_own_while_it_is_there(tiny, call, tmp_path):
    """A course that has changed since doesn't change what a practice goes back to."""
    folder = tmp_path / "w"
    assert call("--course", tiny, "practice", "02", folder).status == 0
    starter = (folder / NAME).read_bytes()
    source = tiny / "starters/02" / NAME
    source.write_text(source.read_text("utf-8") + "# newer\n", "utf-8")
    (folder / NAME).write_text("mine = 1\n")
    assert call("reset", "--yes", cwd=folder).status == 0
    assert (folder / NAME).read_bytes() == starter


def test_damaged_starter_object_falls_back(practice, call, git, file, starter):
    """An object that is lost is no obstacle either."""
    (blob,) = git(practice, "rev-parse", f"refs/course/start:{NAME}")
    pack = next((practice / ".git/objects/pack").glob("*.pack"), None)
    if pack is not None:
        data = pack.read_bytes()
        for part in (practice / ".git/objects/pack").glob("pack-*"):
            part.chmod(0o644)
            part.unlink()
        subprocess.run(["git", "unpack-objects", "-q"], input=data, cwd=practice, check=True)
    loose = practice / ".git/objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.unlink()
    file.write_text("mine = 1\n")
    answer = call("reset", "--yes", cwd=practice)
    assert (answer.status, file.read_bytes()) == (0, starter)


def test_lost_repository_is_status_three(practice, call, file, git):
    """Without a repository nothing can be kept, so that nothing is changed; an outer one is not used."""
    outer = practice.parent
    (practice / ".git").rename(outer / "lost")
    subprocess.run(["git", "init", "-q", outer], check=True)
    file.write_text("mine = 1\n")
    answer = call("reset", "--yes", cwd=practice)
    assert (answer.status, answer.told[0]) == (
        3,
        f"course: {practice} has no git repository any more, so that nothing can be kept.",
    )
    assert file.read_text() == "mine = 1\n"
    assert git(outer, "for-each-ref") == []
    subprocess.run(["git", "init", "-q"], cwd=practice, check=True)
    assert call("reset", "--yes", cwd=practice).status == 0
    assert kept_data(practice, git) == b"mine = 1\n"


# Kills


def test_leftover_lock_only_costs_its_number(practice, call, git, file):
    """A ref's lock that a killed git left is stepped over."""
    file.write_text("mine = 1\n")
    (practice / ".git/refs/course/kept").mkdir(parents=True)
    (practice / ".git/refs/course/kept/1.lock").touch()
    assert call("reset", "--yes", cwd=practice).status == 0
    assert kept_data(practice, git, "refs/course/kept/2") == b"mine = 1\n"


def test_leftovers_of_a_dead_run_are_swept(practice, call, file):
    """What a kill left aside goes away with the next reset."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = practice / f".course-partial-reset-{_host()}-{dead.pid}-0a-x"
    left.mkdir()
    (left / "fresh").write_text("half")
    file.write_text("mine = 1\n")
    assert call("reset", "--yes", cwd=practice).status == 0
    assert not left.exists()


class Versions:
    """What the learner wrote, round by round; each must be in the file or in a kept commit after a reset."""

    def __init__(self, practice: Path, git) -> None:
        self._practice = practice
        self._git = git
        self._kept: set[bytes] = set()
        self.last = b""

    def write(self) -> None:
        self.last = b"version = %d\n" % random.randrange(10**12)
        (self._practice / NAME).write_bytes(self.last)

    def check(self) -> None:
        refs = self._git(self._practice, "for-each-ref", "--format=%(refname)", "refs/course/kept")
        kept = {kept_data(self._practice, self._git, ref) for ref in refs}
        assert self._kept <= kept, "what was kept once stays"
        self._kept = kept
        file = self._practice / NAME
        assert self.last in kept or file.read_bytes() == self.last


@pytest.mark.parametrize(
    ("modules", "kills"),
    [("course.snapshot,course.kept,course.commands.reset", 12), ("course.,git,tempfile,shutil", 8)],
)
def test_kill_at_random_moments_loses_nothing(practice, git, file, starter, modules, kills, tmp_path):
    """After a kill at any of twenty moments each version is in the file or in a kept commit."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    versions = Versions(practice, git)
    versions.write()
    command = [sys.executable, script, "1000000000", modules, "reset", "--yes"]
    whole = subprocess.run(command, cwd=practice, capture_output=True, text=True, check=True)
    moments = int(whole.stdout.split()[-1])
    chance = random.Random(7)
    for _ in range(kills):
        versions.write()
        moment = str(chance.randint(1, moments))
        killed = subprocess.run(
            [*command[:2], moment, *command[3:]], cwd=practice, capture_output=True, check=False
        )
        assert killed.returncode in (-signal.SIGKILL, 0), killed.stderr
        versions.check()
        assert file.read_bytes() in (starter, versions.last)
    ended = subprocess.run(command, cwd=practice, check=False, capture_output=True)
    assert (ended.returncode, file.read_bytes()) == (0, starter)
    assert list(practice.glob(".course-partial-*")) == []


def test_kill_with_git_at_random_times_loses_nothing(practice, git, file, starter):
    """The same where the whole group dies, git in the middle of its work included."""
    versions = Versions(practice, git)
    chance = random.Random(11)
    command = [sys.executable, "-m", "course", "reset", "--yes"]
    for _ in range(8):
        versions.write()
        running = subprocess.Popen(
            command,
            cwd=practice,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            running.wait(timeout=chance.uniform(0.15, 0.9))
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        versions.check()
    assert subprocess.run(command, cwd=practice, check=False, capture_output=True).returncode == 0
    assert file.read_bytes() == starter


def test_two_resets_at_once_keep_both_versions(practice, git, file, starter):
    """Resets that race give each kept commit a ref of its own."""
    file.write_text("mine = 1\n")
    command = [sys.executable, "-m", "course", "reset", "--yes"]
    running = [
        subprocess.Popen(command, cwd=practice, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    told = [process.communicate() for process in running]
    assert all(b"Traceback" not in err for _, err in told)
    assert file.read_bytes() == starter
    assert kept_data(practice, git) == b"mine = 1\n"


def test_only_the_named_of_several_files_goes_back(tiny, course, program, tmp_path):
    """Each teaching file can go back alone; one without a starter of its own goes back to the parent's."""
    manifest = tiny / "labs/02/lab.toml"
    text = manifest.read_text("utf-8")
    one, two = f'teaching_files = ["{NAME}"]', f'teaching_files = ["{NAME}", "src/findex/__init__.py"]'
    assert one in text
    manifest.write_text(text.replace(one, two), "utf-8")
    folder = tmp_path / "w"
    assert course("--course", tiny, "practice", "02", folder).status == 0
    files = [folder / NAME, folder / "src/findex/__init__.py"]
    starters = [file.read_bytes() for file in files]
    for file in files:
        file.write_text("mine = 1\n")
    alone = course("reset", "--yes", "src/findex/__init__.py", cwd=folder)
    assert alone.out.splitlines()[0] == "Back to the starter: src/findex/__init__.py"
    assert [file.read_bytes() for file in files] == [b"mine = 1\n", starters[1]]
    files[1].write_text("mine = 2\n")
    both = course("reset", "--yes", cwd=folder)
    assert [file.read_bytes() for file in files] == starters
    assert program(["sh", "-c", way_back(both.out)], cwd=folder).status == 0
    assert [file.read_text() for file in files] == ["mine = 1\n", "mine = 2\n"]
    unknown = course("reset", "--yes", "README.md", cwd=folder)
    assert unknown.told[1] == f"Those: {NAME}, src/findex/__init__.py."


def test_linked_work_tree_is_a_practice_too(practice, course, program, git, starter, tiny_folder, tmp_path):
    """Where .git is a file that leads to the repository, what was there is kept in that."""
    other = tmp_path / "other tree"
    git(practice, "worktree", "add", "--quiet", "-b", "other", str(other))
    (other / NAME).write_text("mine = 1\n")
    answer = course("--course", tiny_folder, "reset", "--yes", cwd=other)
    assert (answer.status, (other / NAME).read_bytes()) == (0, starter)
    assert kept_data(practice, git) == b"mine = 1\n"
    assert program(["sh", "-c", way_back(answer.out)], cwd=other).status == 0
    assert (other / NAME).read_text() == "mine = 1\n"
