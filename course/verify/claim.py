"""What a claim is, and how claims are judged: true, false, or broken where they could not be checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from course.errors import CourseError
from course.manifest import ManifestError
from course.outcome import Status

S = TypeVar("S")
P = ParamSpec("P")


class ClaimFalse(Exception):
    """A claim does not hold; the text says what was found instead."""


class ClaimBroken(CourseError):
    """A claim can't be checked: a run that it needs can't be trusted."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence about a chapter (`12`) or the whole course (empty), and the check that proves it.

    `prove` returns a short remark (a count, say), and raises ClaimFalse where the sentence is not true. A
    `long` one is begun before the others, so that no worker is left alone with it in the end.
    """

    chapter: str
    sentence: str
    prove: Callable[[], str]
    long: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of a claim: PASSED is true, FAILED false, BROKEN could not be checked."""

    chapter: str
    sentence: str
    status: Status
    remark: str
    seconds: float


def claim_about(
    chapter: str,
    sentence: str,
    prove: Callable[Concatenate[S, P], str],
    subject: S,
    *more: P.args,
    **options: P.kwargs,
) -> Claim:
    """A claim whose check is a function of what it is about."""
    return Claim(chapter=chapter, sentence=sentence, prove=lambda: prove(subject, *more, **options))


def judge_claim(claim: Claim) -> Verdict:
    """Check one claim; whatever keeps it from being checked makes it BROKEN, never true.

    A manifest that can't be used is the author's own falsehood.
    """
    begun = time.monotonic()
    try:
        status, remark = Status.PASSED, claim.prove()
    except ClaimFalse as falsehood:
        status, remark = Status.FAILED, str(falsehood)
    except ManifestError as error:
        status, remark = Status.FAILED, error.message
    except CourseError as error:
        status, remark = Status.BROKEN, error.message
    except Exception as error:  # noqa: BLE001 - a claim that can't be checked is broken, whatever the reason
        status, remark = Status.BROKEN, f"{type(error).__name__}: {error}"
    return Verdict(
        chapter=claim.chapter,
        sentence=claim.sentence,
        status=status,
        remark=remark,
        seconds=time.monotonic() - begun,
    )


def judge_claims(claims: Iterable[Claim], pool: Executor) -> Iterator[Verdict]:
    """Check claims on a pool; verdicts come in the claims' order."""
    asked = list(claims)
    order = sorted(range(len(asked)), key=lambda index: not asked[index].long)
    waiting: dict[int, Future[Verdict]] = {index: pool.submit(judge_claim, asked[index]) for index in order}
    try:
        for index in range(len(asked)):
            yield waiting[index].result()
    finally:
        for future in waiting.values():
            future.cancel()


def counted(number: int, noun: str) -> str:
    """A number and its noun: `1 test`, `2 tests`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
