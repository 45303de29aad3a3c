"""`course watch` in a real pseudo-terminal: keys pressed, screen read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Done = Callable[[Path, str], None]
Terminal = Callable[..., Any]
INDEX = Path("src", "findex", "index.py")
LEGEND = "h hint"


def test_saves_lead_from_red_to_green(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path, done: Done
) -> None:
    """A verdict at once, one after each save, then the next lab, then the whole chapter; q ends with 0."""
    child = terminal("watch", cwd=practice)
    child.expect("Lab 02.1 0/2 · first red: Lab 02.1 ranking 尚未实现")
    child.expect(LEGEND)
    done(practice, "02.1")
    child.expect("checking 02.1")
    child.expect("Lab 02.1 2/2")
    child.expect("Lab 02.2 0/1 · first red: Lab 02.2 phrases 尚未实现")
    child.expect(LEGEND)
    done(practice, "02.3")
    child.expect("Chapter 02 4/4")
    child.expect(LEGEND)
    child.send("q")
    assert ended(child).status == 0


def test_keys_do_what_the_legend_says(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path, done: Done
) -> None:
    """H hints, a checks all, n moves on, d drills."""
    done(practice, "02.1")
    child = terminal("watch", cwd=practice)
    child.expect("Lab 02.2 0/1")
    child.expect(LEGEND)
    child.send("h")
    child.expect("Hint 1/3 for Lab 02.2")
    child.send("a")
    child.expect("checking chapter 02")
    child.expect("Lab 02.3 0/1")
    child.expect(LEGEND)
    child.send("n")
    child.expect("checking 02.3")
    child.expect(LEGEND)
    child.send("d")
    child.expect("caught    02.1-words-once")
    child.expect(LEGEND)
    child.send("q")
    assert ended(child).status == 0


def test_atomic_saves_and_bursts_are_one_verdict_each(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path, tiny_folder: Path
) -> None:
    """An editor that writes beside and renames is seen; ten saves at once end in the last one's verdict."""
    child = terminal("watch", cwd=practice)
    child.expect(LEGEND)
    text = (tiny_folder / "solutions" / "02" / INDEX).read_text("utf-8")
    for number in range(10):
        fresh = practice / "src" / "findex" / ".index.py.new"
        fresh.write_text(text + f"# {number}\n", "utf-8")
        os.replace(fresh, practice / INDEX)  # noqa: PTH105 - as editors do it
    child.expect("Chapter 02 4/4")
    child.expect(LEGEND)
    child.send("q")
    assert ended(child).status == 0


def test_edit_of_equal_size_in_the_same_second_is_seen(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path, done: Done
) -> None:
    """What counts is the text."""
    done(practice, "02.3")
    child = terminal("watch", cwd=practice)
    child.expect("Chapter 02 4/4")
    child.expect(LEGEND)
    file = practice / INDEX
    stat = file.stat()
    text = file.read_text("utf-8")
    file.write_text(text.replace("(-hit[1]", "(+hit[1]"), "utf-8")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    child.expect("checking")
    child.expect(r"Lab 02.\d \d/\d · first red|02.1 1/2|02.1 0/2")
    child.send("q")
    assert ended(child).status == 0


def test_endless_loop_is_killed_and_said_so(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path, done: Done
) -> None:
    """A loop in learner code ends at the deadline with its line, and watching goes on."""
    done(practice, "02.3")
    file = practice / INDEX
    text = file.read_text("utf-8")
    child = terminal("watch", cwd=practice)
    child.expect("Chapter 02 4/4")
    child.expect(LEGEND)
    file.write_text(text + "\nwhile True:\n    pass\n", "utf-8")
    child.expect("did not end within")
    child.expect(LEGEND)
    file.write_text(text, "utf-8")
    child.expect("2/2")
    child.send("q")
    assert ended(child).status == 0


def test_interrupt_ends_it_and_gives_the_terminal_back(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path
) -> None:
    """Ctrl-C ends with 130, and the terminal echoes again."""
    child = terminal("watch", cwd=practice)
    child.expect(LEGEND)
    assert ended(child, child.sendintr).status == 130


def test_cold_runs_give_the_same_verdicts(
    terminal: Terminal, ended: Callable[[Any], Any], practice: Path, done: Done, tmp_path: Path
) -> None:
    """Where a fork is not to be had, runs start cold, and it is said so."""
    done(practice, "02.1")
    (tmp_path / "sitecustomize.py").write_text("import os\ndel os.fork\n", "utf-8")
    child = terminal("watch", cwd=practice, env={"PYTHONPATH": str(tmp_path)})
    child.expect("runs start cold")
    child.expect("Lab 02.2 0/1 · first red: Lab 02.2 phrases 尚未实现")
    child.expect(LEGEND)
    child.send("q")
    assert ended(child).status == 0


def test_watch_without_standard_input_goes_on(tiny_folder: Path, practice: Path) -> None:
    """`course watch 0<&-`: there are no keys, and the verdict is told all the same."""
    line = f'exec "{sys.executable}" -m course --course "{tiny_folder}" watch 0<&-'
    with subprocess.Popen(
        ["sh", "-c", line], cwd=practice, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watch:
        assert watch.stdout is not None
        first = watch.stdout.readline()
        watch.kill()
    assert first.startswith(b"02.1 0/2 | "), first
