"""Changes of files, shown as a diff or written: for the commands that edit."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from apflint.edit.files import NotReplacedError, replace
from apflint.report.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def say(message: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"{visible(message)}\n")


def print_diff(name: str, before: str, after: str) -> None:
    """A unified diff that `patch` and `git apply` read; a carriage return is a part of its line."""
    show = visible if sys.stdout.isatty() else str
    for line in _diff(name, before, after):
        body = line.removesuffix("\n")
        sys.stdout.write(f"{show(body)}\n" if line.endswith("\n") else f"{show(body)}\n\\ No newline at end of file\n")


def print_bytes(data: bytes) -> None:
    """Bytes on standard output, as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write(path: str, before: bytes, after: bytes) -> str | None:
    """Replaces the content of a file; a reason where that was not done."""
    try:
        replace(path, before, after)
    except NotReplacedError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    import difflib

    path = name.lstrip("/")
    return difflib.unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}")


def _lines(text: str) -> list[str]:
    lines: Iterable[str] = io.StringIO(text, newline="\n")
    return list(lines)
