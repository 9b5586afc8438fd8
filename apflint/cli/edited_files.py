"""Prints or writes edited files, for `fix` and `migrate`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from apflint.cli.terminal import is_ci_log
from apflint.edit.file_content import NotReplacedError, replace
from apflint.output.patch import render_patch, sanitize_patch_line
from apflint.output.sanitize import sanitize, sanitize_path

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_remark(message: str) -> None:
    """Print a line on standard error that may start with the name of a file."""
    sys.stderr.write(f"{sanitize_path(message)}\n")


def print_edited(name: str, path: str, before: bytes, after: bytes, named: Sequence[str], *, diff: bool) -> str | None:
    """Print the edits as a patch, or write the file; for standard input, print the result. Return a message if that fails.

    `named` are the paths of the command line.
    """
    if diff:
        if after != before:
            _print_patch(name, before, after)
    elif path in ("-", "/dev/stdin"):
        sys.stdout.flush()
        sys.stdout.buffer.write(after)
        sys.stdout.buffer.flush()
    elif after != before and (reason := _write(path, before, after, named)):
        return f"{name}: not written: {reason}"
    return None


def _print_patch(name: str, before: bytes, after: bytes) -> None:
    """Print a patch. It is exact in a file or a pipe, and sanitized on a terminal and in the log of a CI system."""
    lines = render_patch(name, before, after)
    if sys.stdout.isatty():
        lines = map(sanitize, lines)
    elif is_ci_log():
        lines = map(sanitize_patch_line, lines)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _write(path: str, before: bytes, after: bytes, named: Sequence[str]) -> str | None:
    """Replace the content of a file. Return the reason if it is not replaced."""
    real = os.path.realpath(path)
    below = (f"{os.path.realpath(directory).rstrip('/')}/" for directory in named)
    if path not in named and os.path.islink(path) and not real.startswith(tuple(below)):
        return "it is a symbolic link to a file elsewhere; to change that file, name the link or the file"
    try:
        replace(path, before, after)
    except NotReplacedError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None
