"""Turns exceptions into messages and exit codes, and prints errors and notes on standard error."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from apflint.cli.exit_codes import ExitCode
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_MESSAGE_CHARACTERS = 10_000
"""Maximum length of a printed message. Messages that quote long input are truncated."""
_PREFIX = "apflint: "
_NOTE_INDENT = 2
"""Number of cells by which the lines of a message after the first line are indented."""
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
"""Error numbers of an OSError without a file name that mean that standard output cannot be written."""


def run_and_report_errors(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code. If the command returns None, the exit code is 0.

    Exceptions are printed as one line on standard error. Any exception except UserError, OSError and KeyboardInterrupt
    is a bug in apflint. Such exceptions are reported as internal errors, or raised if APFLINT_DEBUG is set.
    """
    try:
        exit_code = command() or ExitCode.OK
        sys.stdout.flush()
    except UserError as error:
        return print_error(str(error))
    except KeyboardInterrupt:
        return report_interrupt()
    except BrokenPipeError:  # the program that reads from a pipe has ended, as in `| head`
        _discard_output()
        return ExitCode.OK
    except OSError as error:
        return _report_os_error(error)
    except Exception as error:
        if _follows_interrupt(error):
            return report_interrupt()
        if os.environ.get("APFLINT_DEBUG"):
            raise
        return print_error(
            f"internal error: {type(error).__name__}: {error}. This is a bug in apflint. Set APFLINT_DEBUG=1 to see the"
            " traceback, and please report it"
        )
    return exit_code


def report_interrupt() -> ExitCode:
    """Print that the user interrupted the run, and return the exit code."""
    print_note("interrupted")
    return ExitCode.INTERRUPTED


def _follows_interrupt(error: BaseException) -> bool:
    """Return whether a KeyboardInterrupt caused this exception: some libraries raise their own exception on Ctrl-C."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def print_error(message: str) -> ExitCode:
    """Print a message, as `print_note` does, and return `ExitCode.ERROR`. Long messages are truncated."""
    print_note(message if len(message) <= _MAX_MESSAGE_CHARACTERS else f"{message[:_MAX_MESSAGE_CHARACTERS]}...")
    return ExitCode.ERROR


def print_note(message: str) -> None:
    """Print a sanitized message on standard error, after the prefix `apflint:`.

    The message is one line, except in a narrow terminal.
    """
    sys.stderr.write(format_note(message))


def format_note(message: str) -> str:
    """Return a message with the prefix `apflint:`, as lines that end with a newline.

    If standard error is a terminal, the lines fit into its width. Otherwise, the message is one line.
    """
    from apflint.output.console import hang

    width = None
    if sys.stderr and sys.stderr.isatty():
        from apflint.cli.terminal import style

        width = style("never", sys.stderr).prose_width
    return "".join(f"{line}\n" for line in hang(_PREFIX, message, width, _NOTE_INDENT))


def _report_os_error(error: OSError) -> ExitCode:
    reason = str(error.strerror or error)
    if error.filename:
        return print_error(f"{error.filename}: {reason}")
    if error.errno in _OUTPUT_ERRORS:
        _discard_output()
        return print_error(f"cannot write to standard output: {reason}")
    # An ENOENT error without a file name comes from os.getcwd.
    if error.errno == errno.ENOENT:
        return print_error("the current directory no longer exists")
    return print_error(reason)


def _discard_output() -> None:
    """Redirect standard output to the null device, so that Python does not report a failed flush when it exits."""
    with suppress(ValueError):  # in tests, standard output may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
