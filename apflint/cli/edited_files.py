"""Writes edited files, or prints the edits as patches, for the commands `fix` and `migrate`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from apflint.cli.terminal import is_ci_log, style
from apflint.edit.file_content import NotReplacedError, replace
from apflint.output.console import Style
from apflint.output.patch import render_patch, sanitize_patch_line
from apflint.output.sanitize import sanitize, sanitize_path

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATCH_COLORS = {"---": "bold", "+++": "bold", "@@": "gutter", "+": "good", "-": "error"}
"""Maps the start of a line of a patch to the style of the line."""


def print_remark(message: str) -> None:
    """Print a message about a file on standard error. The message starts with the file name, not with `apflint:`."""
    sys.stderr.write(f"{sanitize_path(message)}\n")


def is_standard_input(path: str) -> bool:
    """Return whether a path is `-` or `/dev/stdin`. The edited text of standard input goes to standard output."""
    return path in ("-", "/dev/stdin")


def print_edited(
    name: str, path: str, before: bytes, after: bytes, named: Sequence[str], *, diff: bool, color: str
) -> str | None:
    """Write the edited file, or print a patch if `diff` is true. Return None, or a message if writing failed.

    If `path` is standard input (`-` or `/dev/stdin`), print the edited text. `named` are the paths on the command line.
    """
    if diff:
        if after != before:
            _print_patch(name, before, after, color)
    elif is_standard_input(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(after)
        sys.stdout.buffer.flush()
    elif after != before and (reason := _write(path, before, after, named)):
        return f"{name}: not written: {reason}"
    return None


def _print_patch(name: str, before: bytes, after: bytes, color: str) -> None:
    """Print a patch. On a terminal and in a CI log, the patch is sanitized. In a file or a pipe, it is unchanged.

    FORCE_COLOR has no effect on a patch in a file or a pipe, because `git apply` would reject a patch with colors.
    """
    lines = render_patch(name, before, after)
    if color == "always" or (sys.stdout.isatty() and style(color).color):
        lines = map(_paint_patch_line, lines)
    elif sys.stdout.isatty():
        lines = map(sanitize, lines)
    elif is_ci_log():
        lines = map(sanitize_patch_line, lines)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _paint_patch_line(line: str) -> str:
    code = next((code for start, code in _PATCH_COLORS.items() if line.startswith(start)), "")
    return Style(color=True).paint(sanitize(line), code) if code else sanitize(line)


def _write(path: str, before: bytes, after: bytes, named: Sequence[str]) -> str | None:
    """Replace the content of a file. Return None, or the reason if the content was not replaced."""
    real = os.path.realpath(path)
    below = (f"{os.path.realpath(directory).rstrip('/')}/" for directory in named)
    if path not in named and os.path.islink(path) and not real.startswith(tuple(below)):
        return (
            "it is a symbolic link to a file outside of the named directories:"
            " to change the file, name it or the link on the command line"
        )
    try:
        replace(path, before, after)
    except NotReplacedError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None
