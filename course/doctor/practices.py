"""The practice and its course as the doctor sees them: what is missing, damaged or not as it was made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from course.doctor.finding import Finding, bad, ok, warn
from course.doctor.scene import Scene
from course.doctor.surroundings import learner_setting
from course.git import GitError
from course.notes import Note
from course.places import installed_courses
from course.practice import MARK, START_REF, Practice, find_practice
from course.repository import Repository
from course.request import command_line, from_here

_NOTES = ("hints", "quiz")


class PracticeState:
    """The course that is meant here, and the practice that the user is in."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def course(self) -> Iterator[Finding]:
        """Whether the course is found and every manifest of it holds."""
        course = self._scene.find_course()
        kind = "installed" if course.installed else "a checkout"
        if course.edition is not None:
            kind += f", a learner's edition without answers from chapter {course.edition.hides} on"
        yield ok("course", f"{course.manifest.id}, {kind}: {course.root}")
        for one in installed_courses():
            if one.root is None:
                seen = f"the installed course {one.name} can't be used: {one.fault}"
                yield warn("course", seen, "Install its wheel again, or uninstall it.")
        practice = self._scene.practice
        if practice is not None and practice.course != course.manifest.id:
            seen = f"this practice belongs to the course {practice.course!r}"
            yield bad("course", seen, "Name that course by --course DIR, or install it.")

    def practice(self) -> Iterator[Finding]:
        """Whether the practice's own files are as they were made."""
        root = self._scene.root
        if root is None:
            yield ok("practice", "you are not inside one")
            return
        if not (root / MARK).is_file():
            mend = f"git -C {from_here(root)} restore --source={START_REF} -- {MARK.as_posix()}"
            yield bad("practice", f"{root / MARK} is gone", mend)
            return
        practice = find_practice(self._scene.start)
        if practice is None:
            return
        yield ok("practice", f"chapter {practice.chapter}, {practice.language}: {root}")
        if practice.source is None:
            yield warn(
                "practice",
                "the course's folder that it was made from is not there any more",
                "Nothing, where the course is found above; else name it by --course DIR.",
            )
        yield from self._repository(practice)
        yield from self._teaching_files(practice)
        yield from self._notes(practice)

    def _repository(self, practice: Practice) -> Iterator[Finding]:
        repository = Repository(practice)
        lock = practice.root / ".git" / "index.lock"
        if lock.exists():
            yield warn(
                "repository", f"{lock} is there: a git command runs, or was killed", f"rm {from_here(lock)}"
            )
        if repository.attempt("rev-parse", "--quiet", "--verify", f"{START_REF}^{{commit}}") is None:
            seen = f"{START_REF} is gone; `course reset` takes the course's present starter"
            yield warn("repository", seen, _way_to_start(repository, practice))
            return
        changed = self._changed(repository)
        if changed:
            files = " ".join(changed)
            where = f"git -C {from_here(practice.root)} restore --source={START_REF} -- {files}"
            yield warn("repository", f"not as the practice was made: {', '.join(changed)}", where)
        else:
            yield ok("repository", "tests, project files and earlier chapters are as they were made")

    def _changed(self, repository: Repository) -> list[str]:
        """What differs from the starter commit, or is gone, and is not the learner's to change."""
        chapter = self._scene.chapter
        own = chapter.manifest.teaching_files if chapter is not None else ()
        given = ("src", "tests", "pyproject.toml", MARK.as_posix(), *(f":(exclude){name}" for name in own))
        try:
            names = repository.run("diff", "--name-only", "-z", "--no-ext-diff", START_REF, "--", *given)
        except GitError:
            return []
        return [name for name in names.split("\0") if name]

    def _teaching_files(self, practice: Practice) -> Iterator[Finding]:
        chapter = self._scene.chapter
        if chapter is None:
            return
        missing, crlf = [], []
        for name in chapter.manifest.teaching_files:
            file = practice.root / name
            if not file.is_file() or file.is_symlink():
                missing.append(name)
            elif b"\r\n" in file.read_bytes():
                crlf.append(name)
        reset = command_line("course", "reset", *missing)
        if missing:
            yield warn("teaching files", f"missing, a link or a folder: {', '.join(missing)}", reset)
        if crlf:
            seen = f"CRLF line ends in {', '.join(crlf)}"
            files = " ".join(from_here(practice.root / name) for name in crlf)
            yield warn("line endings", seen, f"sed -i 's/\\r$//' {files}")
        yield from self._autocrlf(practice.root, crlf)

    def _autocrlf(self, root: Path, crlf: list[str]) -> Iterator[Finding]:
        value = learner_setting(root, "core.autocrlf")
        ruled = (root / ".gitattributes").is_file()
        if value in ("true", "input") and not ruled:
            seen = f"core.autocrlf is {value} and the practice's .gitattributes is gone"
            yield warn("line endings", seen, f"git -C {from_here(root)} config core.autocrlf false")
        elif not crlf:
            rule = "; .gitattributes keeps LF" if ruled else ""
            yield ok("line endings", f"LF; core.autocrlf is {value or 'not set'}{rule}")

    def _notes(self, practice: Practice) -> Iterator[Finding]:
        for name in _NOTES:
            note = Note(practice, name)
            if note.is_damaged:
                seen = f"{note.file} can't be read; it is kept aside and begun anew with the next use"
                yield warn("notes", seen, f"mv {from_here(note.file)} {from_here(note.file)}.damaged")


def _way_to_start(repository: Repository, practice: Practice) -> str:
    """How the ref of the starter commit comes back, where the learner's own history still has it."""
    subject = f"^Chapter {practice.chapter} starter$"
    commit = repository.attempt("rev-list", "--max-count=1", f"--grep={subject}", "--all")
    if not commit:
        return "Nothing, as long as the course is found."
    return f"git -C {from_here(practice.root)} update-ref {START_REF} {commit}"
