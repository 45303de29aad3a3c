"""Warm runs that are forked from a template: the verdicts of a fresh process, whatever was imported ahead."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from course import judge
from course.inside.pages import read_pages, take_pages, write_own_pages
from course.labs import run_tests
from course.outcome import RunOutcome
from course.runner import ColdRunner, WarmRunner, can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="runs are warm where a process can be forked")

FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\nasyncio_mode = "auto"\n',
    "src/pkg/__init__.py": "",
    "src/pkg/early.py": "from pkg._note import note\nnote('early')\nVALUE = 1\n",
    "src/pkg/taught.py": "from pkg._note import note\nnote('taught')\ndef answer():\n    return 41\n",
    "src/pkg/late.py": "from pkg import early, taught\nSUM = early.VALUE + taught.answer()\n",
    "src/pkg/_note.py": (
        "import os\nfrom pathlib import Path\nNOTES = Path(__file__).parents[2] / 'notes'\n"
        "def note(what):\n"
        "    with NOTES.open('a') as file:\n        print(what, os.getppid(), file=file)\n"
    ),
    "tests/conftest.py": "import pytest\n@pytest.fixture\ndef total():\n    return 42\n",
    "tests/test_it.py": "from pkg import late\ndef test_sum(total):\n    assert late.SUM == total\n",
}


@pytest.fixture
def run(tmp_path: Path) -> judge.TestRun:
    """A run of one test, which needs an earlier module, a taught one and one that has both."""
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return judge.TestRun(
        tree=tmp_path, package="pkg", modules=["pkg.taught"], files=["tests/test_it.py"], deadline=20
    )


@pytest.fixture
def warm() -> Iterator[WarmRunner]:
    """A warm runner of the test's own."""
    with WarmRunner() as runner:
        yield runner


def notes(run: judge.TestRun) -> list[str]:
    """Which modules were imported since the last time that this was asked, in that order."""
    return [line.split()[0] for line in noted(run)]


def noted(run: judge.TestRun) -> list[str]:
    """The same with the parent of the process that imported them."""
    file = run.tree / "notes"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    file.unlink(missing_ok=True)
    return lines


def told(outcome: RunOutcome) -> tuple[str, str, list[str]]:
    """A verdict: status, cause and the text of each red."""
    reds = [test.failure.message.splitlines()[0] for test in outcome.tests if test.failure is not None]
    return outcome.status.value, outcome.cause, reds


def plant(run: judge.TestRun, text: str) -> judge.TestRun:
    """The run with a fault."""
    file = run.tree / "fault.py"
    file.write_text(text, "utf-8")
    return replace(run, fault=file)


def test_runs_of_one_kind_import_ahead_what_is_not_taught(run: judge.TestRun, warm: WarmRunner) -> None:
    """From the second of a kind on, earlier modules and conftest.py are there; what is taught comes anew."""
    assert told(run_tests(run, warm)) == ("passed", "", [])
    assert notes(run) == ["taught", "early"]
    for _ in range(3):
        assert told(run_tests(run, warm)) == ("passed", "", [])
    assert notes(run) == ["early", "taught", "taught", "taught"]


@pytest.mark.parametrize(
    ("name", "old", "new", "cause"),
    [
        ("src/pkg/taught.py", "return 41", "return 40", ""),
        ("src/pkg/early.py", "VALUE = 1", "VALUE = 2", ""),
        ("tests/conftest.py", "return 42", "return 43", ""),
        ("tests/test_it.py", "== total", "!= total", ""),
        ("pyproject.toml", 'mode = "auto"', 'mode = "auto"\npython_functions = "no"', "no test was found"),
    ],
)
def test_every_edit_is_seen_by_the_next_run(
    run: judge.TestRun, warm: WarmRunner, name: str, old: str, new: str, cause: str
) -> None:
    """Whatever a template has read already: an edit within a second, of equal length, is not missed."""
    file = run.tree / name
    for _ in range(2):
        for _ in range(3):
            assert run_tests(run, warm).status.value == "passed"
        text = file.read_text("utf-8")
        file.write_text(text.replace(old, new), "utf-8")
        outcome = run_tests(run, warm)
        assert (outcome.status.value, outcome.cause) == ("failed", cause)
        file.write_text(text, "utf-8")


def test_edit_behind_a_link_is_seen_by_the_next_run(
    run: judge.TestRun, warm: WarmRunner, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also where a folder of the package is a link, to itself even."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "deep.py").write_text("VALUE = 1\n", "utf-8")
    package = run.tree / "src" / "pkg"
    (package / "far").symlink_to(outside, target_is_directory=True)
    (package / "round").symlink_to(package, target_is_directory=True)
    (package / "early.py").write_text("from pkg.far.deep import VALUE\n", "utf-8")
    for _ in range(3):
        assert run_tests(run, warm).status.value == "passed"
    (outside / "deep.py").write_text("VALUE = 2\n", "utf-8")
    assert run_tests(run, warm).status.value == "failed"


def test_file_that_cannot_be_read_and_folder_that_is_gone_are_no_matter(
    run: judge.TestRun, warm: WarmRunner
) -> None:
    """A pipe below the source, a test that removes its own temporary folders: runs go on."""
    os.mkfifo(run.tree / "src" / "pkg" / "pipe")
    text = "import shutil\ndef test_it(tmp_path):\n    shutil.rmtree(tmp_path.parents[1])\n"
    (run.tree / "tests" / "test_it.py").write_text(text, "utf-8")
    for _ in range(3):
        assert told(run_tests(run, warm)) != ("passed", "", [])
    (run.tree / "tests" / "test_it.py").write_text(FILES["tests/test_it.py"], "utf-8")
    assert told(run_tests(run, warm)) == ("passed", "", [])


@pytest.mark.parametrize("name", ["src/pkg/early/__init__.py", "conftest.py"])
def test_a_new_file_is_seen_by_the_next_run(run: judge.TestRun, warm: WarmRunner, name: str) -> None:
    """A package that hides a module, a conftest.py that was not there."""
    for _ in range(3):
        assert run_tests(run, warm).status.value == "passed"
    file = run.tree / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("VALUE = 2\ndef pytest_collection_modifyitems(items):\n    items.clear()\n", "utf-8")
    assert run_tests(run, warm).status.value == "failed"


@pytest.mark.parametrize(
    ("fault", "red"),
    [
        ("def inject(module):\n    module.answer = lambda: 1\n", "assert 2 == 42"),
        ("MODULE = 'pkg.early'\ndef inject(module):\n    module.VALUE = 9\n", "assert 50 == 42"),
        ("import pkg.early\ndef inject(module):\n    pkg.early.VALUE = 7\n", "assert 48 == 42"),
        ("def inject(module):\n    from pkg import early\n    early.VALUE = 5\n", "assert 46 == 42"),
    ],
)
def test_fault_stands_before_all_that_a_cold_run_imports_behind_it(
    run: judge.TestRun, warm: WarmRunner, fault: str, red: str
) -> None:
    """Also where a module that was imported ahead would have taken the right value by then."""
    (run.tree / "src" / "pkg" / "early.py").write_text("VALUE = 1\n", "utf-8")
    (run.tree / "src" / "pkg" / "copy.py").write_text("from pkg.early import VALUE\n", "utf-8")
    late = "from pkg import copy, taught\nSUM = copy.VALUE + taught.answer()\n"
    (run.tree / "src" / "pkg" / "late.py").write_text(late, "utf-8")
    assert run_tests(run, warm).status.value == "passed"
    planted = plant(run, fault)
    for runner in (warm, ColdRunner(), warm, warm):
        assert told(run_tests(planted, runner)) == ("failed", "", [red])
    assert run_tests(run, warm).status.value == "passed"


@pytest.mark.parametrize("line", ["MODULE='pkg.early'", "MODULE: str = 'pkg.early'  # not taught"])
def test_module_of_a_fault_may_be_written_in_any_way(run: judge.TestRun, warm: WarmRunner, line: str) -> None:
    """A plain string, however it stands there; what is computed is refused by name, never put elsewhere."""
    inject = "def inject(module):\n    module.VALUE = 9\n"
    for runner in (warm, ColdRunner()):
        assert told(run_tests(plant(run, f"{line}\n{inject}"), runner)) == ("failed", "", ["assert 50 == 42"])
        refused = run_tests(plant(run, f"MODULE = '.'.join(['pkg', 'early'])\n{inject}"), runner)
        assert (refused.status.value, "MODULE has to be a plain string" in refused.cause) == ("broken", True)


@pytest.mark.parametrize(
    "line",
    [
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import pkg.early",
        "import helper",
        "import os\nos.set_inheritable(os.pipe()[0], True)",
    ],
)
def test_conftest_that_a_template_could_not_stand_for_is_run_each_time(
    run: judge.TestRun, warm: WarmRunner, line: str
) -> None:
    """Threads, the code under test, modules of the tree: then the server forks each run itself."""
    (run.tree / "src" / "helper.py").write_text("", "utf-8")
    conftest = run.tree / "tests" / "conftest.py"
    conftest.write_text(f"from pathlib import Path\n{line}\n{conftest.read_text('utf-8')}", "utf-8")
    for _ in range(3):
        assert told(run_tests(run, warm)) == ("passed", "", [])
    parents = {line.split()[1] for line in noted(run) if line.startswith("taught")}
    assert len(parents) == (2 if "pipe" in line else 1)


def test_import_that_hangs_ahead_hangs_no_run(run: judge.TestRun, warm: WarmRunner) -> None:
    """A template that does not come so far is given up at the run's deadline, and the run is made without."""
    early = "import time\nif NOTES.is_file() and NOTES.read_text().count('early') == 2:\n    time.sleep(99)\n"
    text = FILES["src/pkg/early.py"].replace("import note\n", "import NOTES, note\n")
    (run.tree / "src" / "pkg" / "early.py").write_text(text + early, "utf-8")
    short, begun = replace(run, deadline=2.0), time.monotonic()
    for _ in range(3):
        assert told(run_tests(short, warm)) == ("passed", "", [])
    assert time.monotonic() - begun < 60


def test_killed_template_is_no_matter(run: judge.TestRun, warm: WarmRunner) -> None:
    """Where the process that runs are forked from is gone, the next one is made without it."""
    for _ in range(3):
        run_tests(run, warm)
    template = int(noted(run)[-1].split()[1])
    os.kill(template, signal.SIGKILL)
    for _ in range(2):
        assert told(run_tests(run, warm)) == ("passed", "", [])


def test_runner_leaves_no_process(run: judge.TestRun) -> None:
    """When a runner is closed all that it started has ended, and has been waited for."""
    with WarmRunner() as warm:
        for _ in range(3):
            run_tests(run, warm)
        for fault in ("x = 1", "x = 2"):
            run_tests(plant(run, f"def inject(module):\n    module.answer = lambda: 1\n{fault}\n"), warm)
        started = {int(line.split()[1]) for line in noted(run)}
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_environment_and_directory_are_the_run_s_own(run: judge.TestRun, warm: WarmRunner) -> None:
    """What one run changes of its process reaches no later one."""
    text = (
        "import os\nfrom pkg import late\ndef test_it(tmp_path, total, capfd):\n"
        "    assert 'LEFT' not in os.environ and not list(tmp_path.iterdir())\n"
        "    os.environ['LEFT'] = 'x'\n    (tmp_path / 'left').touch()\n    os.chdir('/')\n"
        "    os.system('echo seen')\n    assert capfd.readouterr().out == 'seen\\n'\n"
    )
    (run.tree / "tests" / "test_it.py").write_text(text, "utf-8")
    for _ in range(4):
        assert told(run_tests(run, warm)) == ("passed", "", [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages are a process's own")
def test_pages_that_were_written_are_known(tmp_path: Path) -> None:
    """In a forked child, what it wrote is among its own pages; taking them is harmless, also nonsense."""
    buffer = bytearray(1 << 22)
    file = tmp_path / "pages"
    pid = os.fork()
    if pid == 0:
        buffer[1 << 21] = 1
        write_own_pages(file)
        os._exit(0)
    os.waitpid(pid, 0)
    ranges = read_pages(file)
    assert not file.exists()
    if not ranges:
        pytest.skip("this system does not show a process its own pages")
    assert all(length > 0 and start % os.sysconf("SC_PAGESIZE") == 0 for start, length in ranges)
    take_pages([*ranges, (0, 4096)])
    file.write_text("no numbers here\n", "utf-8")
    assert read_pages(file) == []


def test_endless_loop_ends_at_its_deadline_in_a_forked_run_too(run: judge.TestRun, warm: WarmRunner) -> None:
    """Killed within 1.2 times its deadline, told with its line, and the next run is right."""
    for _ in range(2):
        run_tests(run, warm)
    looped = plant(
        run,
        "def inject(module):\n    def answer():\n        while True:\n            pass\n    module.answer = answer\n",
    )
    begun = time.monotonic()
    outcome = run_tests(replace(looped, deadline=2.0), warm)
    assert outcome.timed_out
    assert time.monotonic() - begun < 2.0 * 1.2 + 0.5
    assert told(run_tests(run, warm)) == ("passed", "", [])
