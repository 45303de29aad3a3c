"""The pytest plugin that testifies from inside a run: which package was tested, and how each test ended.

It writes one JSON line an event. Decision: the file is opened anew for each line, because learner code may
close any descriptor or end the process any time.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import importlib.machinery
import importlib.util
import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from course.inside.exits import ExitWatch
from course.inside.fresh import FreshLoader, forget, import_ahead, lies_in, load_fresh_under
from course.inside.pytestrun import SETTINGS

NAME = "course-witness"
_GRACE = 5.0
_LONGEST = 4000
_HYPOTHESIS = "_hypothesis_pytestplugin"
# Their own: learner code, and the witness that watches for it, put others in their place.
_open, _put, _close = os.open, os.write, os.close


class Witness:
    """Testifies to one run at a time.

    `settings`: report, tree, package, modules, fault and its target, until, shuffle, kept.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._watchdog: Any = None
        self._relative: dict[str, str | None] = {}
        self._exits = ExitWatch(
            lambda call, frames: self.tell("exit", places=self._places(frames), call=call)
        )
        self.take(settings)

    def take(self, settings: dict[str, Any]) -> None:
        """Be of a run with these settings."""
        self.report = Path(settings["report"])
        self.tree = Path(settings["tree"])
        self.package: str = settings["package"]
        self.modules: list[str] = settings["modules"]
        self.fault: str | None = settings["fault"]
        self.target: str = settings["target"]
        self.until: float = settings["until"]
        self.shuffle: int | None = settings["shuffle"]
        self.kept = Path(settings["kept"]) if settings["kept"] else None
        self._compared: tuple[str, str] | None = None
        self._loaded = len(sys.modules)

    def tell(self, event: str, **data: Any) -> None:
        """Write one event."""
        self._write([{"event": event, **data}])

    def _write(self, events: Iterable[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(event, ensure_ascii=True) + "\n" for event in events)
        descriptor = _open(self.report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _put(descriptor, lines.encode("ascii"))
        finally:
            _close(descriptor)

    def prepare(self) -> None:
        """Before collection: load from source, watch for exits, prove the package, plant the fault."""
        FreshLoader.kept = self.kept
        load_fresh_under(str(self.tree / "src"))
        self._exits.begin()
        self._start_watchdog()
        self.tell("start", origin=self._origin(), pid=os.getpid())
        if self.fault is not None:
            self._plant(self.fault, self.target)
        for name in self.modules:
            self._try_import(name)

    def settle(self, names: Iterable[str]) -> None:
        """Before a fork: import what a run has imported when its first teaching module comes, or its fault.

        `names` are modules that such runs imported.
        """
        FreshLoader.kept = self.kept
        load_fresh_under(str(self.tree / "src"))
        own = (name for name in names if lies_in(name, self.package))
        import_ahead(own, barred=[*self.modules, self.target])
        if self.target:
            importlib.import_module(self.target)

    def _origin(self) -> str | None:
        try:
            spec = importlib.util.find_spec(self.package)
        except (ImportError, ValueError):
            return None
        return spec.origin if spec is not None else None

    def _start_watchdog(self) -> None:
        """Have the stack of an endless loop written shortly before the engine ends this process."""
        self._watchdog = self.report.with_suffix(".stack").open("w", encoding="utf-8")
        faulthandler.dump_traceback_later(max(0.05, 0.85 * (self.until - time.time())), file=self._watchdog)
        self._end_alone(self.until + _GRACE)

    def _end_alone(self, end: float) -> None:
        """Have this process end by itself where the engine was killed and nobody else ends it."""
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, max(_GRACE, end - time.time()))

    def _plant(self, file: str, target: str) -> None:
        spec = importlib.util.spec_from_file_location("course_fault", file)
        if spec is None or spec.loader is None:
            raise pytest.UsageError(f"{file} is not a Python file")
        fault = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fault)
        if getattr(fault, "MODULE", target) != target:
            raise pytest.UsageError(f"MODULE has to be a plain string, the name of {fault.MODULE}")
        module = importlib.import_module(target)
        fault.inject(module)
        self.tell("planted", fault=file, module=module.__name__)

    def _try_import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - whatever ends an import is testified, sys.exit too
            self.tell("import_failed", module=name, **self._failure(error, "collect"))
            forget(name)

    def _failure(self, error: BaseException, phase: str) -> dict[str, Any]:
        names = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, BaseException)]
        try:
            message = str(error)
        except Exception:  # noqa: BLE001 - a learner's exception may fail to say itself
            message = "(this exception's __str__ failed)"
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]}…"
        places = self._places(
            (f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)
        )
        if isinstance(error, SyntaxError) and error.filename:
            places += self._places([(error.filename, error.lineno or 1)])
        return {
            "phase": phase,
            "types": names,
            "message": message,
            "places": places,
            "assertion_only": _is_assertion(error),
        }

    def _places(self, frames: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        found = [(self._place(file), line) for file, line in frames if not file.startswith("<")]
        return [(file, line) for file, line in found if file is not None]

    def _place(self, file: str) -> str | None:
        """The path inside the tree, None for one that leads out of it."""
        if file not in self._relative:
            try:
                relative = Path(file).resolve().relative_to(self.tree.resolve()).as_posix()
            except (ValueError, OSError):
                relative = None
            self._relative[file] = relative
        return self._relative[file]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Testify to what could not be collected."""
        report = yield
        call = getattr(report, "call", None)
        if report.failed:
            error = call.excinfo.value if call is not None and call.excinfo is not None else None
            cause = (error.__cause__ or error) if error is not None else None
            if cause is not None:
                failure = self._failure(cause, "collect")
                failure["message"] = str(error) if not failure["places"] else failure["message"]
                self.tell("collect_failed", node=collector.nodeid, **failure)
            else:
                self.tell(
                    "collect_failed", node=collector.nodeid, phase="collect", types=[], message="", places=[]
                )
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Pass over what lies beside the asked files; pytest asks of nothing that was asked for by name."""
        asked = (Path(argument.partition("::")[0]) for argument in config.args)
        return None if any(collection_path.is_relative_to(path) for path in asked) else True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Shuffle where a seed was given."""
        if self.shuffle is not None:
            random.Random(self.shuffle).shuffle(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Testify to what will be run."""
        self._write(self._item(item) for item in session.items)

    def _item(self, item: pytest.Item) -> dict[str, Any]:
        file = item.path.relative_to(self.tree) if item.path.is_relative_to(self.tree) else item.path
        rule = (getattr(getattr(item, "function", None), "__doc__", None) or "").strip()
        return {
            "event": "item",
            "node": item.nodeid,
            "name": getattr(item, "originalname", None) or item.name,
            "file": file.as_posix(),
            "rule": " ".join(rule.split("\n\n")[0].split()),
            "markers": sorted({mark.name for mark in item.iter_markers()}),
        }

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        """Remember what a failing comparison compared: lab tests write `assert actual == expected`."""
        self._compared = (_shown(left), _shown(right)) if op == "==" else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Testify to a phase of a test."""
        report = yield
        data: dict[str, Any] = {"node": item.nodeid, "phase": report.when, "outcome": report.outcome}
        if report.failed and call.excinfo is not None:
            compared = self._compared if isinstance(call.excinfo.value, AssertionError) else None
            failure = self._failure(call.excinfo.value, report.when or "call")
            printed = report.capstdout[-_LONGEST:]
            data["failure"] = {**failure, "compared": compared, "printed": printed}
        self._compared = None
        self.tell("phase", seconds=call.duration, **data)
        return report

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Testify that the run came to its own end, and which files were imported."""
        names = {self.package, *self.modules}
        files = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
        libraries, earlier = self._imported()
        self.tell("end", exit=int(exitstatus), files=files, libraries=libraries, earlier=earlier)
        self._exits.end()
        # Nothing of a run that is over is worth the collections that pytest makes at its end.
        gc.freeze()
        if "hypothesis" not in sys.modules:
            # No test used it; its plugin would import it now, for a summary of nothing.
            session.config.pluginmanager.unregister(name=_HYPOTHESIS)

    def _imported(self) -> tuple[list[str], list[str]]:
        """What the run imported: library modules, and those of the package but for what is taught."""
        libraries: list[str] = []
        earlier: list[str] = []
        # The newest names only: touching the others copies pages that are shared with the fork's parent.
        count = max(0, len(sys.modules) - self._loaded)
        for name in list(itertools.islice(reversed(sys.modules), count)):
            origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
            if lies_in(name, self.package):
                earlier += [name] if name not in self.modules else []
            elif origin in ("built-in", "frozen") or origin.startswith((sys.prefix, sys.base_prefix)):
                libraries.append(name)
        return sorted(libraries), earlier[::-1]


def _is_assertion(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_assertion(inner) for inner in error.exceptions)
    return isinstance(error, AssertionError | pytest.fail.Exception)


def _shown(value: object) -> str:
    """A value's repr, in bounds; a learner's __repr__ may fail."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - see above
        return f"<{type(value).__name__} whose repr failed: {type(error).__name__}>"
    return text if len(text) <= 600 else f"{text[:400]} … {text[-160:]}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Take the stand, where the engine asked for it: behind all that pytest does before it collects."""
    settings = json.loads(os.environ.pop(SETTINGS, "null"))
    if settings is None:
        return
    witness = session.config.pluginmanager.get_plugin(NAME)
    if witness is None:
        witness = Witness(settings)
        session.config.pluginmanager.register(witness, NAME)
    else:
        witness.take(settings)
    witness.prepare()
