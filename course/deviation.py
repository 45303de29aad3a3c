"""The first deviation of a red lab: what should hold, what came instead, and the learner's line."""

from __future__ import annotations

from dataclasses import dataclass

from course.catalog import Chapter
from course.outcome import Failure, LabOutcome, Place, Status, TestOutcome

_VISIBLE = {
    "\t": "→",
    "\r": "␍",
    "\u00a0": "⍽",
    "\u200b": "<U+200B>",
    "\ufeff": "<U+FEFF>",
    "\u2028": "<U+2028>",
    "\u2029": "<U+2029>",
}


HANG = 13
_PRINTED = 12


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """One deviation: `rule` is the behaviour that the test states, `found` what came instead."""

    test: str | None
    rule: str
    found: str
    expected: str | None = None
    actual: str | None = None
    place: Place | None = None
    printed: str = ""

    def lines(self) -> list[str]:
        """For a person."""
        lines = []
        if self.rule:
            lines.append(f"should hold  {self.rule}")
        lines.append(f"instead      {self.found}")
        if self.expected is not None and self.actual is not None:
            lines.append(f"expected     {visible(self.expected)}")
            lines.append(f"actual       {visible(self.actual)}")
            difference = _first_difference(self.expected, self.actual)
            if difference:
                lines.append(f"             {difference}")
        if self.place is not None:
            lines.append(f"look at      {self.place}")
        if self.test is not None:
            lines.append(f"test         {self.test}")
        printed = self.printed.rstrip().splitlines()[-_PRINTED:]
        lines += [
            f"{'' if number else 'printed':{HANG}}{visible(line)}" for number, line in enumerate(printed)
        ]
        return lines

    def data(self) -> dict[str, object]:
        """For a program."""
        return {
            "test": self.test,
            "rule": self.rule,
            "found": self.found,
            "expected": self.expected,
            "actual": self.actual,
            "file": self.place.path if self.place is not None else None,
            "line": self.place.line if self.place is not None else None,
            "printed": self.printed or None,
        }


def first_deviation(outcome: LabOutcome, chapter: Chapter, language: str) -> Deviation:
    """The deviation to look at first, of a lab that is not green."""
    run = outcome.run
    if outcome.status is Status.BROKEN or outcome.first_red is None:
        rule = chapter.lab(outcome.lab).goal.get(language, "")
        place = run.place if run is not None else None
        return Deviation(test=None, rule=rule, found=_sentence(outcome.cause), place=place)
    test = outcome.first_red
    if test.failure is None:
        found = run.cause if run is not None and run.cause else "the test was not run to its end"
        place = run.place if run is not None else None
        return Deviation(test=test.name, rule=test.rule, found=_sentence(found), place=place)
    return _of_failure(test, test.failure, chapter)


def _of_failure(test: TestOutcome, failure: Failure, chapter: Chapter) -> Deviation:
    own = [place for place in failure.places if place.path in chapter.manifest.teaching_files]
    inside = own or [place for place in failure.places if place.path.startswith("src/")] or failure.places
    return Deviation(
        test=test.name,
        rule=test.rule,
        found=_sentence(failure.headline),
        expected=failure.expected,
        actual=failure.actual,
        place=inside[-1] if inside else None,
        printed=failure.printed,
    )


def _sentence(text: str) -> str:
    return visible(" ".join(text.split()))[:400]


def visible(text: str) -> str:
    """The text with invisible characters made visible."""
    return "".join(_VISIBLE.get(c, c if c.isprintable() else f"<U+{ord(c):04X}>") for c in text)


def _first_difference(expected: str, actual: str) -> str:
    """Where two reprs begin to differ, with a little of what stands around."""
    if max(len(expected), len(actual)) < 60:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b), None)
    if at is None:
        at = min(len(expected), len(actual))
    start = max(0, at - 12)
    ours, theirs = visible(expected[start : at + 24]), visible(actual[start : at + 24])
    return f"they differ from …{ours}… against …{theirs}…"
