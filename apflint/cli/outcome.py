"""What becomes of a command: an exit status, and one sentence on standard error where it failed."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 10_000
"""Characters of a sentence: it may have in it what somebody wrote."""
_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
"""What writing to a file without a name may fail with, which is standard output: other files have one."""


def said(command: Callable[[], int]) -> int:
    """Runs the body of a command. A ValueError is a sentence for the user about what he asked for; nothing is raised."""
    try:
        status = command()
        sys.stdout.flush()
    except ValueError as error:
        return failed(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        reason = str(error.strerror or error)
        if error.errno in _UNWRITTEN and not error.filename:
            _forget_output()
            return failed(f"standard output cannot be written: {reason}")
        if error.errno == errno.ENOENT and not error.filename and _is_nowhere():
            return failed("the current directory does not exist any more: change to another one")
        return failed(f"{error.filename}: {reason}" if error.filename else reason)
    except Exception as error:  # noqa: BLE001  # the last resort: one sentence, not a traceback
        return bug(error)
    return status


def failed(message: str) -> int:
    """One sentence on standard error; the exit status that goes with it."""
    from apflint.output.sanitize import sanitize

    sys.stderr.write(f"apflint: {sanitize(message if len(message) <= _LONGEST else message[:_LONGEST] + '...')}\n")
    return 2


def bug(error: Exception) -> int:
    """The sentence for what must not happen. Raises it where APFLINT_DEBUG is set."""
    if os.environ.get("APFLINT_DEBUG"):
        raise error
    return failed(
        f"internal error: {type(error).__name__}: {error}. This is a bug in apflint; APFLINT_DEBUG=1 shows where. Please report it"
    )


def _is_nowhere() -> bool:
    """Whether somebody has removed the current directory."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _closed_pipe() -> int:
    """Whoever read our output has had enough (`| head`): no error."""
    _forget_output()
    return 0


def _forget_output() -> None:
    """Sends what is left of the output nowhere, so that Python does not complain of it at its end."""
    with suppress(ValueError):  # where it is no file, but for somebody who reads it in this process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(message: str) -> None:
    """Print a message as one line on standard error."""
    from apflint.output.sanitize import sanitize

    sys.stderr.write(f"apflint: {sanitize(message)}\n")
