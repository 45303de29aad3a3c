"""The pytest plugin that testifies from inside a run: which package was tested, and how each test ended.

It runs in the child process, imports nothing of the engine and writes one JSON line an event. Decision: the
file is opened anew for each line, because learner code may close any descriptor or end the process any time.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Generator, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

from course.fresh import FreshLoader, load_fresh_under

SETTINGS = "COURSE_WITNESS"
_GRACE = 5.0
_LONGEST = 4000
_DESCRIPTORS = 256
_HYPOTHESIS = "_hypothesis_pytestplugin"


class Witness:
    """Testifies to one run. `settings`: report, tree, package, modules, fault, until, shuffle, kept."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.report = Path(settings["report"])
        self.tree = Path(settings["tree"])
        self.package: str = settings["package"]
        self.modules: list[str] = settings["modules"]
        self.fault: str | None = settings.get("fault")
        self.until: float | None = settings.get("until")
        self.shuffle: int | None = settings.get("shuffle")
        self.kept = Path(settings["kept"]) if settings.get("kept") else None
        self._compared: tuple[str, str] | None = None
        self._watchdog: Any = None
        self._needed: frozenset[int] = frozenset()
        self._loaded = frozenset(sys.modules)

    def tell(self, event: str, **data: Any) -> None:
        """Write one event."""
        line = json.dumps({"event": event, **data}, ensure_ascii=True) + "\n"
        with self.report.open("a", encoding="ascii") as file:
            file.write(line)

    def prepare(self) -> None:
        """Before collection: load from source, watch for exits, prove the package, plant the fault."""
        FreshLoader.kept = self.kept
        load_fresh_under(str(self.tree / "src"))
        self._watch_exits()
        self._start_watchdog()
        self.tell("start", origin=self._origin(), pid=os.getpid())
        if self.fault is not None:
            self._plant(self.fault)
        for name in self.modules:
            self._try_import(name)

    def _origin(self) -> str | None:
        try:
            spec = importlib.util.find_spec(self.package)
        except (ImportError, ValueError):
            return None
        return spec.origin if spec is not None else None

    def _start_watchdog(self) -> None:
        """Have the stack of an endless loop written shortly before the engine ends this process."""
        if self.until is not None:
            self._watchdog = self.report.with_suffix(".stack").open("w", encoding="utf-8")
            faulthandler.dump_traceback_later(
                max(0.05, 0.85 * (self.until - time.time())), file=self._watchdog
            )
            self._end_alone(self.until + _GRACE)

    def _end_alone(self, end: float) -> None:
        """Have this process end by itself where the engine was killed and nobody else ends it."""
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, max(_GRACE, end - time.time()))

    def _watch_exits(self) -> None:
        """Testify to what ends or blinds the process from inside, and to the line that does it."""
        leave = os._exit
        self._needed = frozenset(_open_descriptors())
        for name in ("close", "closerange"):
            setattr(os, name, self._told_first(name, getattr(os, name)))

        def tell_and_leave(status: int) -> NoReturn:
            self.tell("exit", places=self._places(_frames(sys._getframe(1))), call="os._exit")
            leave(status)

        os._exit = tell_and_leave

    def _told_first(self, name: str, close: Any) -> Any:
        def tell_and_close(descriptor: int, *more: int) -> None:
            if not self._needed.isdisjoint(range(descriptor, more[0] if more else descriptor + 1)):
                self.tell("exit", places=self._places(_frames(sys._getframe(1))), call=f"os.{name}")
            close(descriptor, *more)

        return tell_and_close

    def _plant(self, file: str) -> None:
        spec = importlib.util.spec_from_file_location("course_fault", file)
        if spec is None or spec.loader is None:
            raise pytest.UsageError(f"{file} is not a Python file")
        fault = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fault)
        module = importlib.import_module(getattr(fault, "MODULE", self.modules[0]))
        fault.inject(module)
        self.tell("planted", fault=file, module=module.__name__)

    def _try_import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - whatever ends an import is testified, sys.exit too
            self.tell("import_failed", module=name, **self._failure(error, "collect"))
            for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
                del sys.modules[loaded]

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
        places = []
        for file, line in frames:
            if file.startswith("<"):
                continue
            try:
                relative = Path(file).resolve().relative_to(self.tree.resolve())
            except (ValueError, OSError):
                continue
            places.append((relative.as_posix(), line))
        return places

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

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Shuffle where a seed was given."""
        if self.shuffle is not None:
            random.Random(self.shuffle).shuffle(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Testify to what will be run."""
        for item in session.items:
            function = getattr(item, "originalname", None) or item.name
            rule = (getattr(getattr(item, "function", None), "__doc__", None) or "").strip()
            file = item.path.relative_to(self.tree) if item.path.is_relative_to(self.tree) else item.path
            markers = sorted({mark.name for mark in item.iter_markers()})
            rule = " ".join(rule.split("\n\n")[0].split())
            self.tell(
                "item", node=item.nodeid, name=function, file=file.as_posix(), rule=rule, markers=markers
            )

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
        self.tell("end", exit=int(exitstatus), files=files, libraries=self._libraries())
        if "hypothesis" not in sys.modules:
            # No test used it; its plugin would import it now, for a summary of nothing.
            session.config.pluginmanager.unregister(name=_HYPOTHESIS)

    def _libraries(self) -> list[str]:
        """The library modules that the run imported beyond what was loaded when it began."""
        found = []
        for name in sys.modules.keys() - self._loaded:
            origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None)
            if origin in ("built-in", "frozen") or (
                origin and origin.startswith((sys.prefix, sys.base_prefix))
            ):
                found.append(name)
        return [] if self.fault is not None else sorted(found)


def _open_descriptors() -> Generator[int]:
    """What is open now: standard streams, and pytest's own copies of them."""
    for descriptor in range(_DESCRIPTORS):
        with contextlib.suppress(OSError):
            os.fstat(descriptor)
            yield descriptor


def _frames(frame: FrameType | None) -> list[tuple[str, int]]:
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_stack(frame)]
    return frames[::-1]


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


def pytest_configure(config: pytest.Config) -> None:
    """Take the stand, where the engine asked for it."""
    settings = os.environ.pop(SETTINGS, None)
    if settings is not None:
        witness = Witness(json.loads(settings))
        config.pluginmanager.register(witness, "course-witness")
        witness.prepare()
