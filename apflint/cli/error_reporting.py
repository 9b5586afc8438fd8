"""Turns exceptions into messages and exit codes, and prints errors and notes on standard error."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from apflint.cli.exit_codes import ExitCode
from apflint.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_MESSAGE_CHARACTERS = 10_000
"""A message may quote the user's input."""
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
"""Errors of standard output, if the exception has no file name."""


def run_and_report_errors(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code, which is 0 for None. Exceptions become one line on standard error.

    UserError is a mistake of the user; any other exception is a bug in apflint.
    """
    try:
        exit_code = command() or ExitCode.OK
        sys.stdout.flush()
    except UserError as error:
        return print_error(str(error))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of the output has finished, as in `| head`
        _discard_output()
        return ExitCode.OK
    except OSError as error:
        return _report_os_error(error)
    except Exception as error:
        if os.environ.get("APFLINT_DEBUG"):
            raise
        return print_error(
            f"internal error: {type(error).__name__}: {error}. This is a bug in apflint. Set APFLINT_DEBUG=1 to see the"
            " traceback, and please report it"
        )
    return exit_code


def print_error(message: str) -> ExitCode:
    """Print a message as one line on standard error and return the exit code for errors."""
    print_note(message if len(message) <= MAX_MESSAGE_CHARACTERS else f"{message[:MAX_MESSAGE_CHARACTERS]}...")
    return ExitCode.ERROR


def print_note(message: str) -> None:
    """Print a message as one line on standard error."""
    from apflint.output.sanitize import sanitize

    sys.stderr.write(f"apflint: {sanitize(message)}\n")


def _report_os_error(error: OSError) -> ExitCode:
    reason = str(error.strerror or error)
    if error.filename:
        return print_error(f"{error.filename}: {reason}")
    if error.errno in _OUTPUT_ERRORS:
        _discard_output()
        return print_error(f"cannot write to standard output: {reason}")
    if error.errno == errno.ENOENT:  # of os.getcwd: other calls name a file
        return print_error("the current directory no longer exists")
    return print_error(reason)


def _discard_output() -> None:
    """Redirect the rest of the output, so that Python does not report an error when it exits."""
    with suppress(ValueError):  # standard output is not a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
