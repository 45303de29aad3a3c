"""The claim that a learner's edition gives nothing of a chapter away: its files are read one by one."""

from __future__ import annotations

from course.catalog import Chapter
from course.edition import edition_files, withheld
from course.verify.bench import Workbench
from course.verify.claim import ClaimFalse, counted
from course.verify.search import Search


def edition_hides(bench: Workbench, chapter: Chapter) -> str:
    """The edition that leaves answers out from this chapter on holds none of this chapter's."""
    course = bench.course
    files = [(name, (course.root / name).read_bytes()) for name in edition_files(course, chapter)]
    found = next(Search(course, [chapter]).in_files(files), "")
    if found:
        raise ClaimFalse(found)
    closed = withheld(course, chapter)
    later = f", without the starter of {', '.join(closed)}" if closed else ""
    return f"{counted(len(files), 'file')}{later}"
