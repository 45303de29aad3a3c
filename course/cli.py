"""The command line's edge: global options, commands imported when called, and errors told in one sentence.

Decision: the table of commands holds their help, because importing every command for `--help` costs more than
all the rest.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from course import __version__
from course.errors import CourseError, InputError

_SIGPIPE = 13

COMMANDS = {
    "list": "Show chapters and labs, and progress inside a practice.",
    "checkpoint": "Show where a chapter starts and ends, and what to run next.",
    "practice": "Make a practice directory for a chapter.",
    "check": "Check a practice's labs in order, up to the first red.",
    "hint": "Show the next hint of a lab, from general to specific.",
    "handout": "Read a chapter's text in the terminal.",
    "quiz": "Answer a chapter's questions, then see what a run answers.",
    "demo": "Play a chapter's running example.",
    "diff": "Show what the reference changed in a chapter, once you have tried.",
    "watch": "Check the current lab on every save.",
    "drill": "Plant faults, and see which tests catch them.",
    "reset": "Put teaching files back to the starter; what was there is kept.",
    "doctor": "Say what of the environment gets in the way, and how to mend it.",
    "transfer": "Judge your own transfer test of a chapter.",
    "record": "Print a practice's acceptance record, from fresh runs.",
    "verify": "Prove the course: the author's gate.",
    "new": "Begin a new course, or a new chapter of this one.",
    "build": "Build a wheel of the course: whole, or for a class without the answers.",
    "pin": "Renew the pinned commit ids of the checkpoints.",
}


class LazyGroup(click.Group):
    """A group whose commands are modules of course.commands, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"course.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="course", message="%(prog)s %(version)s")
@click.option("-C", "directory", metavar="DIR", help="Run as if started in DIR.")
@click.option(
    "--course",
    "course_folder",
    metavar="DIR",
    help="A course's top folder, or an installed one's name.",
)
@click.option("--lang", metavar="en|zh", help="Language of the course's contents.")
@click.option("-v", "--verbose", is_flag=True, help="Say more; show tracebacks of the engine's own failures.")
@click.pass_context
def cli(
    ctx: click.Context, directory: str | None, course_folder: str | None, lang: str | None, verbose: bool
) -> None:
    """Learn by rebuilding real software, lab by lab.

    Start with `course list`, then `course practice N ./mywork`.
    """
    ctx.obj = (directory, course_folder, lang, verbose)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


class Ended(BaseException):
    """A signal told the process to end; raised, so that children are ended and what is half made removed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


def _end(number: int, frame: FrameType | None) -> NoReturn:
    if "course.process" in sys.modules:
        sys.modules["course.process"].end_all()
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


def _heed_signals() -> None:
    """On these signals end in order and at once, runs under way killed; what nohup ignores stays ignored."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def main() -> None:
    """Run the command and end the process with its status."""
    _heed_signals()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    status = run(sys.argv[1:])
    if not _flushed():
        # What is left to write would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _flushed() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def run(arguments: list[str]) -> int:
    """Run the command with these arguments and give the exit status. Errors are told on standard error."""
    verbose = "-v" in arguments or "--verbose" in arguments
    try:
        result = cli.main(args=arguments, prog_name="course", standalone_mode=False)
        sys.stdout.flush()
        return int(result or 0) if not isinstance(result, bool) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _tell("interrupted", "", 130)
    except click.ClickException as error:
        return _tell(error.format_message(), _usage_hint(error), 2)
    except CourseError as error:
        if verbose and not isinstance(error, InputError):
            _print_traceback()
        return _tell(error.message, error.hint, error.exit_status)
    except (BrokenPipeError, SystemExit):
        # Rich and click end so where the reader of a pipe has gone: the verdict was not told.
        return 128 + _SIGPIPE
    except Ended as ended:
        return 128 + ended.signal
    except OSError as error:
        return _os_failure(error, verbose)
    except Exception as error:  # noqa: BLE001 - the edge: a fault of the engine is one sentence too
        if verbose:
            _print_traceback()
        return _tell(
            f"The engine failed: {type(error).__name__}: {error}", "Run it again with -v for the details.", 3
        )


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"`{context.command_path} --help` shows how it is used." if context is not None else ""


def _os_failure(error: OSError, verbose: bool) -> int:
    if verbose:
        _print_traceback()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _tell("The disk is full.", "Make room, then run this again.", 3)
    where = f"{error.filename}: " if error.filename else ""
    return _tell(f"{where}{error.strerror or error}", "Run it again with -v for the details.", 3)


def _tell(message: str, hint: str, status: int) -> int:
    from course.console import Output

    output = Output()
    output.note(f"course: {message}", "red")
    if hint:
        output.note(hint)
    return status
