"""From a run's testimony to its outcome: what is the learner's red, what is ours, and where it happened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.outcome import Failure, Place, RunOutcome, Status, TestOutcome
from course.process import Finished, for_child, from_child

DEADLINE = 60.0
_PYTEST_BROKEN = (3, 4)
_INTERNAL = "INTERNALERROR> "
_DISK_FULL = "[Errno 28] "


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """What to run: files and a marker expression in a tree, whose package is what is judged.

    `modules` are the teaching modules in import order, `fault` a portable fault to plant, `deadline` seconds,
    `shuffle` a seed for another order; `elsewhere` starts pytest in a directory of its own.
    """

    tree: Path
    package: str
    modules: Sequence[str]
    files: Sequence[str]
    expression: str = ""
    fault: Path | None = None
    deadline: float = DEADLINE
    shuffle: int | None = None
    elsewhere: bool = False


def judge(run: TestRun, finished: Finished, events: list[dict[str, Any]], stack: str) -> RunOutcome:
    """Turn a run's testimony into an outcome."""
    tests = _test_outcomes(events)
    failures = _failures(events, "collect_failed", "import_failed")
    broken = _why_broken(run, finished, events, failures)
    if broken:
        return RunOutcome(
            status=Status.BROKEN,
            cause=broken,
            tests=tests,
            collect_failures=failures,
            seconds=finished.seconds,
        )
    cause, place = _why_ended(run, finished, events, failures, stack)
    green = not cause and tests and all(test.status is Status.PASSED for test in tests)
    return RunOutcome(
        status=Status.PASSED if green else Status.FAILED,
        cause=cause,
        tests=tests,
        collect_failures=failures,
        place=place,
        timed_out=finished.timed_out,
        seconds=finished.seconds,
    )


def _why_broken(
    run: TestRun, finished: Finished, events: list[dict[str, Any]], failures: Sequence[Failure]
) -> str:
    """Why this run can't be trusted, empty where it can."""
    start = next((event for event in events if event["event"] == "start"), None)
    if start is None:
        reason = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
        return f"pytest did not start: {reason[-1] if reason else f'status {finished.status}'}"
    source = run.tree.resolve() / "src"
    end = next((event for event in events if event["event"] == "end"), None)
    origins = [start["origin"], *(end["files"].values() if end is not None else [])]
    for origin in origins:
        file = Path(from_child(origin)) if origin is not None else source
        if not file.resolve().is_relative_to(source):
            link = f", a link to {file.resolve()}" if file.is_relative_to(source) else ""
            return f"the {run.package} that was imported is not this tree's own: {file}{link}"
    if start["origin"] is None:
        return f"{run.package} can't be found in {source}"
    if run.fault is not None and not any(event["event"] == "planted" for event in events):
        return f"the fault {run.fault.stem} could not be planted: {_last_line(finished)}"
    if end is not None and end["exit"] in _PYTEST_BROKEN and not failures and not _blinding(events):
        return f"pytest itself failed: {_last_line(finished)}"
    if any(failure.message.startswith(_DISK_FULL) for failure in (*failures, *_failures(events, "phase"))):
        return "the disk is full; make room and run it again"
    return ""


def _failures(events: list[dict[str, Any]], *kinds: str) -> tuple[Failure, ...]:
    found = [event.get("failure", event) for event in events if event["event"] in kinds]
    return tuple(_failure(data) for data in found if "types" in data)


def _blinding(events: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The call of the tree's own code that ended the process, or closed what pytest needs; the last one."""
    calls = [event for event in events if event["event"] == "exit" and event["places"]]
    return calls[-1] if calls else None


def _last_line(finished: Finished) -> str:
    """What pytest says of its own failure, else the last line that was written."""
    lines = [line for line in (finished.stdout + "\n" + finished.stderr).splitlines() if line.strip()]
    own = [line.removeprefix(_INTERNAL) for line in lines if line.startswith(_INTERNAL)]
    return (own or lines)[-1].strip() if lines else f"status {finished.status}"


def _why_ended(
    run: TestRun, finished: Finished, events: list[dict[str, Any]], failures: Sequence[Failure], stack: str
) -> tuple[str, Place | None]:
    """Why the run did not come to its own end, and the line of the tree where; empty where it did."""
    exits = [event for event in events if event["event"] == "exit"]
    end = next((event for event in events if event["event"] == "end"), None)
    if finished.timed_out:
        place = _place_in_stack(run, stack)
        return f"it did not end within {run.deadline:g} s{_at(place)}", place
    if end is not None and end["exit"] in _PYTEST_BROKEN and (call := _blinding(events)) is not None:
        place = _last_place(call["places"])
        return f"{call['call']}() closed what pytest needs{_at(place)}", place
    if end is None:
        place = _last_place(exits[-1]["places"]) if exits else None
        call = exits[-1]["call"] if exits else None
        if call is None and failures:
            return f"{failures[0].headline}{_at(_own(failures[0]))}", _own(failures[0])
        what = f"{call}() ended the run" if call else f"the process ended with status {finished.status}"
        return f"{what}{_at(place)}", place
    if not any(event["event"] == "item" for event in events):
        if failures:
            return f"{failures[0].headline}{_at(_own(failures[0]))}", _own(failures[0])
        return "no test was found", None
    for failure in _failures(events, "collect_failed"):
        return f"{failure.headline}{_at(_own(failure))}", _own(failure)
    return "", None


def _own(failure: Failure) -> Place | None:
    places = [place for place in failure.places if place.path.startswith("src/")] or failure.places
    return places[-1] if places else None


def _at(place: Place | None) -> str:
    return f", at {place}" if place is not None else ""


def _last_place(places: list[list[Any]]) -> Place | None:
    return Place(path=places[-1][0], line=places[-1][1]) if places else None


def _place_in_stack(run: TestRun, stack: str) -> Place | None:
    """The innermost line of the tree in a faulthandler dump, which is most recent first."""
    root = for_child(run.tree.resolve())
    found = re.findall(r'File "([^"]+)", line (\d+)', stack)
    inside = [
        (Path(file).relative_to(root).as_posix(), int(line)) for file, line in found if file.startswith(root)
    ]
    own = [one for one in inside if one[0].startswith("src/")] or inside
    return Place(path=own[0][0], line=own[0][1]) if own else None


def _failure(data: dict[str, Any]) -> Failure:
    compared = data.get("compared")
    return Failure(
        phase=data["phase"],
        types=tuple(data["types"]),
        message=data["message"],
        places=tuple(Place(path=path, line=line) for path, line in data["places"]),
        actual=compared[0] if compared else None,
        expected=compared[1] if compared else None,
        assertion_only=data.get("assertion_only", False),
        printed=data.get("printed", ""),
    )


def _test_outcomes(events: list[dict[str, Any]]) -> tuple[TestOutcome, ...]:
    """One outcome a test function: green where each of its parameters went through all phases."""
    phases: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["event"] == "phase":
            phases.setdefault(event["node"], []).append(event)
    functions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for event in events:
        if event["event"] == "item":
            functions.setdefault((event["file"], event["name"]), []).append(event)
    return tuple(_test_outcome(items, phases) for items in functions.values())


def _test_outcome(items: list[dict[str, Any]], phases: dict[str, list[dict[str, Any]]]) -> TestOutcome:
    ran = [phase for item in items for phase in phases.get(item["node"], [])]
    failed = next((phase for phase in ran if phase["outcome"] == "failed"), None)
    complete = all(len(phases.get(item["node"], [])) == 3 for item in items)
    failure = _failure(failed["failure"]) if failed is not None and "failure" in failed else None
    if failed is not None:
        status = Status.FAILED
    elif any(phase["outcome"] == "skipped" for phase in ran) or not complete:
        status = Status.SKIPPED
    else:
        status = Status.PASSED
    first = items[0]
    return TestOutcome(
        name=first["name"],
        file=first["file"],
        status=status,
        markers=frozenset(first["markers"]),
        rule=first["rule"],
        failure=failure,
        seconds=sum(phase["seconds"] for phase in ran if phase["phase"] == "call"),
    )
