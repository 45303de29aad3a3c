"""`course quiz`: the learner's own answer first, then what a run shows, and never an answer before that."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

LIMIT = "With a limit of 2, can the document whose name comes last be a hit?"
LIMIT_ANSWER = "Yes: the ranking comes first, the limit after it."
ORDER = "Does the text `a fish, red and old` hold the phrase `red fish`?"
ORDER_ANSWER = "No: the order counts."


@pytest.fixture
def asking(tiny, call, tmp_path):
    """A practice whose course asks one question a lab, and one of no lab."""
    questions = [
        ('lab = "02.1"', "test_search_limit", LIMIT, LIMIT_ANSWER),
        ('lab = "02.2"', "test_phrase_words_follow", ORDER, ORDER_ANSWER),
        ("", "test_search_scores", "Which hit comes first?", "The best."),
    ]
    tables = [
        f'[[question]]\n{lab}\ntest = "{test}"\nask = {{ en = "{ask}", zh = "问：{ask}" }}\n'
        f'answer = {{ en = "{answer}", zh = "答：{answer}" }}\n'
        for lab, test, ask, answer in questions
    ]
    (tiny / "labs/02/quiz.toml").write_text("format = 1\n" + "".join(tables), "utf-8")
    assert call("--course", tiny, "practice", "02", tmp_path / "asked").status == 0
    return tmp_path / "asked"


def kept(practice):
    return json.loads((practice / ".course/quiz.json").read_text("utf-8"))


def test_without_a_terminal_the_questions_are_printed(asking, call):
    """In a practice those of the current lab and those of no lab; --all asks every one; no answer shows."""
    current = call("quiz", cwd=asking)
    assert (current.status, current.out.splitlines()) == (
        0,
        [f"1. Lab 02.1 · {LIMIT}", "3. Which hit comes first?"],
    )
    everything = call("quiz", "--all", cwd=asking).out
    assert [line[:2] for line in everything.splitlines()] == ["1.", "2.", "3."]
    assert not (asking / ".course/quiz.json").exists()


def test_answers_come_from_a_run_of_the_learners_code(asking, call, done):
    """--answers gives the course's answer only where the named test is green."""
    done(asking, "02.1")
    out = call("quiz", "--answers", cwd=asking).out
    assert f"answer    {LIMIT_ANSWER}\nshown by test_search_limit: green\n" in out
    assert f"{ORDER}\nnot shown yet: Lab 02.2 is unfinished\n" in out
    assert ORDER_ANSWER not in out
    assert "answer    The best.\nshown by test_search_scores: green\n" in out
    assert "what a run of your code shows" in out


def test_question_without_a_lab_names_the_lab_of_its_test(asking, call):
    """What is unfinished is found by the test's marker."""
    out = call("quiz", "--answers", cwd=asking).out
    assert "Which hit comes first?\nnot shown yet: Lab 02.1 is unfinished\n" in out


def test_reference_answers_outside_of_a_practice(call, tiny_folder):
    """Elsewhere the run is the reference's."""
    answer = call("--course", tiny_folder, "quiz", "2", "--answers", cwd="/")
    assert answer.status == 0
    assert answer.out.splitlines()[0] == "Chapter 02 · what a run of the reference shows"
    assert f"answer    {ORDER_ANSWER}\nshown by test_phrase_words_follow: green\n" in answer.out


def test_earlier_chapter_is_asked_in_a_later_practice(practice, call):
    """A practice of chapter 02 holds chapter 01, and its questions run there."""
    answer = call("quiz", "01", "--answers", cwd=practice)
    assert answer.out.splitlines()[0] == "Chapter 01 · what a run of your code shows"
    assert "shown by test_tokenize_case: green" in answer.out


def test_json_holds_no_answer_that_was_not_asked_for(asking, call, done):
    """Questions alone without --answers; with it what was shown, and null for what was not."""
    asked = call("quiz", "--all", "--json", cwd=asking).document
    assert [sorted(one) for one in asked["questions"]] == [["ask", "lab", "number", "test"]] * 3
    done(asking, "02.1")
    told = call("quiz", "--answers", "--json", cwd=asking).document
    assert (told["format"], told["kind"], told["chapter"], told["subject"]) == (1, "quiz", "02", "your code")
    assert [(one["shown"], one["answer"]) for one in told["questions"]] == [
        (True, LIMIT_ANSWER),
        (False, None),
        (True, "The best."),
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["quiz", "00"], ["course: Chapter 00 asks no questions.", "Those that do: 01, 02."]),
        (["quiz", "9"], ["course: This course has no chapter 9.", "Its chapters: 00, 01, 02."]),
        (["quiz"], ["course: Which chapter? This is not inside a practice.", "Name one of 01, 02."]),
    ],
)
def test_wrong_use_is_one_sentence(call, tiny_folder, arguments, told):
    """What can't be asked is said, with what there is."""
    answer = call("--course", tiny_folder, *arguments, cwd="/")
    assert (answer.status, answer.told) == (2, told)


def test_terminal_asks_keeps_and_answers_later(asking, terminal, ended, done):
    """The learner's words are kept with their time, and met with the course's once a run shows those."""
    child = terminal("quiz", cwd=asking)
    child.expect_exact(LIMIT)
    child.expect_exact("> ")
    child.sendline("no, 名字 is cut off")
    child.expect_exact("Which hit comes first?")
    child.expect_exact("> ")
    child.sendline("")
    first = ended(child)
    assert first.status == 0
    assert "you said  no, 名字 is cut off" in first.out
    assert "not shown yet: Lab 02.1 is unfinished" in first.out
    assert LIMIT_ANSWER not in first.out
    (entry,) = kept(asking)["answers"]
    assert (entry["lab"], entry["question"], entry["answer"]) == ("02.1", LIMIT, "no, 名字 is cut off")
    assert datetime.fromisoformat(entry["time"]).tzinfo is not None

    done(asking, "02.1")
    child = terminal("quiz", cwd=asking)
    child.expect_exact("What you predicted earlier, and what a run shows by now:")
    child.expect_exact(f"answer    {LIMIT_ANSWER}")
    child.expect_exact("shown by test_search_limit: green")
    child.expect_exact(ORDER)
    child.expect_exact("> ")
    assert ended(child, child.sendeof).status == 0
    child = terminal("quiz", cwd=asking)
    child.expect_exact("> ")
    assert "What you predicted earlier" not in child.before, "what was shown is not shown again"


def test_end_of_input_ends_politely_and_keeps_what_was_said(asking, terminal, ended):
    """Ctrl-D is no failure: what was answered before is kept, and answered."""
    child = terminal("quiz", "--all", cwd=asking)
    child.expect_exact("> ")
    child.sendline("yes")
    child.expect_exact(ORDER)
    child.expect_exact("> ")
    answer = ended(child, child.sendeof)
    assert answer.status == 0
    assert "The quiz ends here; what you answered is kept." in answer.out
    assert "you said  yes" in answer.out
    assert [entry["answer"] for entry in kept(asking)["answers"]] == ["yes"]


def test_interrupt_ends_with_130_and_keeps_what_was_said(asking, terminal, ended):
    """Ctrl-C is an interruption; the answers before it are kept already."""
    child = terminal("quiz", "--all", cwd=asking)
    child.expect_exact("> ")
    child.sendline("yes")
    child.expect_exact(ORDER)
    child.expect_exact("> ")
    answer = ended(child, child.sendintr)
    assert (answer.status, "Traceback" in answer.out) == (130, False)
    assert [entry["answer"] for entry in kept(asking)["answers"]] == ["yes"]


def test_asked_again_the_former_answer_is_shown(asking, terminal, ended):
    """Enter keeps a former answer; a new one is added, not written over it."""
    for words in ("yes", "no", ""):
        child = terminal("quiz", cwd=asking)
        child.expect_exact("> ")
        child.sendline(words)
        child.expect_exact("> ")
        answer = ended(child, child.sendeof)
    assert "you said  no" in answer.out
    assert [entry["answer"] for entry in kept(asking)["answers"]] == ["yes", "no"]


def test_outside_of_a_practice_nothing_is_kept(terminal, ended, tiny_folder, tmp_path):
    """On a terminal the reference answers at once."""
    child = terminal("--course", tiny_folder, "quiz", "01", cwd=tmp_path)
    for _ in range(2):
        child.expect_exact("> ")
        child.sendline("perhaps")
    answer = ended(child)
    assert answer.status == 0
    assert "answer    Yes: folded, both are `strasse`." in answer.out
    assert list(tmp_path.iterdir()) == []


def test_no_color_terminal_is_asked_too(asking, terminal, ended):
    """NO_COLOR takes the colours, not the questions."""
    child = terminal("quiz", cwd=asking, env={"NO_COLOR": "1", "TERM": "xterm"})
    child.expect_exact("> ")
    answer = ended(child, child.sendeof)
    assert (answer.status, "\x1b[3" in answer.out) == (0, False)


def test_damaged_answers_are_kept_beside(asking, terminal, ended):
    """Answers that can't be read any more are not thrown away."""
    note = asking / ".course/quiz.json"
    note.write_text('{"format": 1, "answers": [{"answer": "my words"')
    child = terminal("quiz", cwd=asking)
    child.expect_exact("> ")
    child.sendline("new words")
    child.expect_exact("> ")
    assert ended(child, child.sendeof).status == 0
    assert [entry["answer"] for entry in kept(asking)["answers"]] == ["new words"]
    assert "my words" in note.with_name("quiz.json.damaged-1").read_text()


def test_red_from_an_exit_still_shows_what_is_green(asking, call, done):
    """A lab that ends the process takes no other lab's answer away."""
    done(asking, "02.1")
    file = asking / "src/findex/index.py"
    text = file.read_text("utf-8")
    scaffold = 'raise NotImplementedError("Lab 02.2 phrases 尚未实现")'
    assert scaffold in text
    file.write_text(text.replace(scaffold, "import os; os._exit(0)"), "utf-8")
    out = call("quiz", "--answers", cwd=asking).out
    assert "shown by test_search_limit: green" in out
    assert "not shown yet: Lab 02.2 is unfinished" in out


def test_extra_test_may_answer_too(tiny, call, tmp_path):
    """A question may name a test that is not counted."""
    extra = next((tiny / "labs/02").glob("test_02_extra*.py")).read_text("utf-8")
    name = next(line for line in extra.splitlines() if line.startswith("def test_")).split()[1].split("(")[0]
    (tiny / "labs/02/quiz.toml").write_text(
        f'format = 1\n[[question]]\ntest = "{name}"\nask = {{ en = "q", zh = "q" }}\n'
        'answer = { en = "a", zh = "a" }\n'
    )
    out = call("--course", tiny, "quiz", "02", "--answers", cwd=tmp_path).out
    assert f"answer    a\nshown by {name}: green\n" in out
