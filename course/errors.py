"""The engine's own failures: one tree, one sentence each, with what to do next."""

from __future__ import annotations


class CourseError(Exception):
    """Something of ours failed: the course, the engine or the environment.

    `message` says what failed, where and why; `hint` what to type next. `exit_status` is the command's
    exit status when nothing handles the error.
    """

    exit_status = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(CourseError):
    """What the user asked for can't be done as asked."""

    exit_status = 2


class EnvironmentFault(CourseError):
    """The machine lacks something: git, space on the disk, a permission."""
