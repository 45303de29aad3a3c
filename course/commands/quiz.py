"""`course quiz [N]`: a chapter's questions, answered by the learner first and then by a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from course.catalog import Chapter, pick
from course.commands.options import json_option, pass_request
from course.commands.subject import subject_of
from course.drill.drill import Subject
from course.errors import EnvironmentFault, InputError
from course.progress import current_lab
from course.quiz import Predictions, Question, Reading, chapter_questions, read_answers
from course.request import Request


@click.command("quiz")
@click.argument("chapter", required=False, metavar="[N]")
@click.option("--all", "everything", is_flag=True, help="In a practice: not only those of the current lab.")
@click.option(
    "--answers", "only_answers", is_flag=True, help="Ask nothing; show the answers that a run shows."
)
@json_option
@pass_request
def command(
    request: Request, chapter: str | None, everything: bool, only_answers: bool, as_json: bool
) -> None:
    """Ask the questions of chapter N, then answer them from a run.

    In a practice: those of the current lab, kept with your answers, and answered from your own code.
    """
    found = _asked_chapter(request, chapter)
    questions = chapter_questions(request.course, found, request.language)
    predictions = Predictions(request.practice) if request.practice is not None else None
    if only_answers:
        _show_answers(request, found, questions, predictions, as_json)
        return
    asked = questions if everything else _current_questions(request, found, questions)
    if as_json or not request.output.can_ask:
        _show_questions(request, found, asked, as_json)
        return
    with subject_of(request, found) as subject:
        older = [one for one in questions if predictions is not None and predictions.is_open(one)]
        _tell_older(request, found, subject, older, predictions)
        answered = _interview(request, found, asked, predictions)
        if answered:
            readings = _read(request, found, subject, answered)
            request.output.line()
            request.output.line(f"What a run of {subject.name} shows:", "bold")
            _tell_readings(request, readings, predictions)
            if predictions is not None and not all(reading.is_shown for reading in readings):
                request.output.line()
                again = request.next_command("quiz", found.id)
                request.output.line(f"Once the lab is green this shows the course's answer: {again}")


def _asked_chapter(request: Request, number: str | None) -> Chapter:
    if number is not None:
        return request.course.chapter(number)
    if request.practice is None:
        known = ", ".join(chapter.id for chapter in request.course.practice_chapters)
        raise InputError("Which chapter? This is not inside a practice.", f"Name one of {known}.")
    return request.course.chapter(request.practice.chapter)


def _current_questions(request: Request, chapter: Chapter, questions: list[Question]) -> list[Question]:
    """In a practice of this chapter those of the current lab and those of no lab; else all."""
    practice = request.practice
    if practice is None or practice.chapter != chapter.id:
        return questions
    with request.output.working("looking for the current lab"):
        lab = current_lab(request.course, chapter, practice.root)
    return [one for one in questions if lab is None or one.lab in (None, lab.id)]


def _read(
    request: Request, chapter: Chapter, subject: Subject, questions: Sequence[Question]
) -> list[Reading]:
    with request.output.working(f"running the tests on {subject.name}"):
        return read_answers(request.course, chapter, subject.tree, questions)


def _tell_older(
    request: Request,
    chapter: Chapter,
    subject: Subject,
    older: list[Question],
    predictions: Predictions | None,
) -> None:
    """Answer the predictions of earlier sittings that a run shows by now."""
    readings = _read(request, chapter, subject, older) if older else []
    shown = [reading for reading in readings if reading.is_shown]
    if shown:
        request.output.line("What you predicted earlier, and what a run shows by now:", "bold")
        _tell_readings(request, shown, predictions)
        request.output.line()


def _interview(
    request: Request, chapter: Chapter, questions: list[Question], predictions: Predictions | None
) -> list[Question]:
    """Ask one question after the other; give those that were gone through before the input ended."""
    output = request.output
    output.line(f"Chapter {chapter.id} · {pick(chapter.manifest.title, request.language)}", "bold")
    output.line("Your own words, in one line; Enter alone passes a question over, Ctrl-D ends the quiz.")
    gone_through: list[Question] = []
    for position, question in enumerate(questions, start=1):
        output.line()
        where = f" · Lab {question.lab}" if question.lab is not None else ""
        output.line(f"Question {position} of {len(questions)}{where}", "cyan")
        output.prose(question.ask)
        before = predictions.given(question) if predictions is not None else None
        if before:
            output.prose(f"You said before: {before}", "dim")
        answer = output.ask("> ")
        if answer is None:
            output.line(
                "The quiz ends here; what you answered is kept." if predictions else "The quiz ends here."
            )
            break
        if answer and predictions is not None:
            _keep(request, predictions, question, answer)
        gone_through.append(question)
    return gone_through


def _keep(request: Request, predictions: Predictions, question: Question, answer: str) -> None:
    try:
        predictions.add(question, answer, datetime.now(UTC))
    except EnvironmentFault as fault:
        request.output.note(f"This answer can't be kept: {fault.message}", "yellow")


def _tell_readings(request: Request, readings: Sequence[Reading], predictions: Predictions | None) -> None:
    output = request.output
    for reading in readings:
        output.line()
        output.prose(f"{reading.question.number}. {reading.question.ask}")
        mine = predictions.given(reading.question) if predictions is not None else None
        if mine:
            output.prose(f"you said  {mine}", "dim")
        if reading.is_shown:
            output.prose(f"answer    {reading.question.answer}")
        output.line(reading.remark, "green" if reading.is_shown else "yellow")
    if predictions is not None:
        try:
            predictions.mark_shown(reading.question for reading in readings if reading.is_shown)
        except EnvironmentFault as fault:
            output.note(f"This can't be remembered: {fault.message}", "yellow")


def _show_questions(request: Request, chapter: Chapter, questions: list[Question], as_json: bool) -> None:
    if as_json:
        data = [{"number": one.number, "lab": one.lab, "test": one.test, "ask": one.ask} for one in questions]
        request.output.document("quiz", {"chapter": chapter.id, "questions": data})
        return
    for one in questions:
        where = f"Lab {one.lab} · " if one.lab is not None else ""
        request.output.prose(f"{one.number}. {where}{one.ask}")


def _show_answers(
    request: Request,
    chapter: Chapter,
    questions: list[Question],
    predictions: Predictions | None,
    as_json: bool,
) -> None:
    with subject_of(request, chapter) as subject:
        readings = _read(request, chapter, subject, questions)
    if not as_json:
        request.output.line(f"Chapter {chapter.id} · what a run of {subject.name} shows", "bold")
        _tell_readings(request, readings, predictions)
        return
    data = [
        {
            "number": reading.question.number,
            "lab": reading.question.lab,
            "test": reading.question.test,
            "ask": reading.question.ask,
            "yours": predictions.given(reading.question) if predictions is not None else None,
            "shown": reading.is_shown,
            "answer": reading.question.answer if reading.is_shown else None,
            "remark": reading.remark,
        }
        for reading in readings
    ]
    request.output.document("quiz", {"chapter": chapter.id, "subject": subject.name, "questions": data})
