"""The catalog: which course is meant, and what a user's chapter and lab numbers stand for."""

from __future__ import annotations

import shutil

import pytest

from course.catalog import CourseNotFound, find_course, load_course
from course.errors import InputError


def test_named_course_wins(tiny, tiny_folder):
    """--course names the course, wherever the user is."""
    assert find_course(tiny, tiny_folder).root == tiny_folder


def test_course_is_found_from_its_inner_folders(tiny):
    """Inside a course's folders, however deep, that course is meant."""
    deep = tiny / "labs" / "02" / "faults"
    assert find_course(deep).root == tiny


def test_recorded_course_comes_before_the_one_around(tiny, tiny_folder):
    """A practice belongs to the course it was made from, even where it lies in another one's checkout."""
    assert find_course(tiny, None, tiny_folder).root == tiny_folder
    shutil.rmtree(tiny / "checkpoints")
    assert find_course(tiny_folder, None, tiny).root == tiny_folder


def test_folder_that_is_no_course_is_refused(tmp_path, call):
    """--course with a folder that holds no course is wrong input, told with what is missing."""
    ran = call("--course", tmp_path, "list")
    assert ran.status == 2
    assert ran.told[0] == f"course: {tmp_path} is not a course: it has no checkpoints/course.toml."
    with pytest.raises(CourseNotFound):
        load_course(tmp_path)


@pytest.mark.parametrize(
    ("given", "chapter"), [("02", "02"), ("2", "02"), ("1", "01"), ("00", "00"), ("0", "00")]
)
def test_chapter_is_found_by_its_number(given, chapter, tiny_course):
    """`7`, `07` and `12` are chapter numbers as people write them."""
    assert tiny_course.chapter(given).id == chapter


@pytest.mark.parametrize("given", ["99", "3", "002", "2222222222222222222222"])
def test_unknown_chapter_is_told_with_those_there_are(given, tiny_folder, call):
    """An unknown chapter is wrong input; the chapters that there are are named."""
    ran = call("--course", tiny_folder, "checkpoint", given)
    assert ran.status == 2
    assert ran.told == [f"course: This course has no chapter {given}.", "Its chapters: 00, 01, 02."]


@pytest.mark.parametrize("given", ["two", "02.1", "-0", "", "²", "٢", "0x2", "../01", "02 "])
def test_what_is_no_number_is_told(given, tiny_folder, call):
    """What is no chapter number at all is told as such."""
    ran = call("--course", tiny_folder, "checkpoint", "--", given)
    assert ran.status == 2
    assert ran.told == [f"course: {given!r} is not a chapter number.", "Chapters: 00, 01, 02."]


def test_foundation_chapter_names_what_can_be_practised(tiny_folder, call, tmp_path):
    """A foundation chapter has no starter; the message says so and names the chapters that have."""
    ran = call("--course", tiny_folder, "practice", "00", tmp_path / "w")
    assert ran.status == 2
    assert ran.told[0].startswith("course: Chapter 00 is part of the foundation")
    assert "Chapters to practise: 01, 02." in ran.told[1]
    assert not (tmp_path / "w").exists()


def test_labs_are_found_by_their_ids(tiny_course):
    """A lab is written chapter.number; an unknown one is told with those of its chapter."""
    chapter, lab = tiny_course.lab("2.3")
    assert (chapter.id, lab.id) == ("02", "02.3")
    with pytest.raises(InputError, match=r"Chapter 02 has no lab 02\.9"):
        tiny_course.lab("02.9")
    with pytest.raises(InputError, match="'02' is not a lab"):
        tiny_course.lab("02")
    with pytest.raises(InputError, match="part of the foundation"):
        tiny_course.lab("00.1")
