"""Changes of files, shown as a diff or written: for the commands that edit."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from apflint.cli.terminal import is_ci_log
from apflint.edit.files import UTF_8_WITH_MARK, NotReplacedError, decode, replace
from apflint.output.sanitize import sanitize, sanitize_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


_ESCAPES = {byte: chr(byte) for byte in range(0x20, 0x7F)} | {0x22: '\\"', 0x5C: "\\\\"}


def say(message: str) -> None:
    """A line on standard error; it may begin with the name of a file."""
    sys.stderr.write(f"{sanitize_path(message)}\n")


def print_diff(name: str, before: bytes, after: bytes) -> None:
    """Print a unified diff that `patch` and `git apply` read, if both texts are UTF-8; of others one to look at.

    A carriage return is a part of its line, and a byte order mark of the first one. In a file or a pipe the diff is exact.
    On a terminal, and in the log of a CI system, what would act on these is escaped: a context line may be
    ` ::add-mask::x`.
    """
    show = _shower()
    for line in _diff(name, _text(before), _text(after)):
        body = line.removesuffix("\n")
        sys.stdout.write(f"{show(body)}\n" if line.endswith("\n") else f"{show(body)}\n\\ No newline at end of file\n")


def _shower() -> Callable[[str], str]:
    """Return what makes a line of a diff fit for standard output."""
    if sys.stdout.isatty():
        return sanitize
    return _inert_line if is_ci_log() else str


def _inert_line(line: str) -> str:
    """Return a line that no CI system takes for a command. Tabs stay, and the carriage return of its end."""
    body = line.removesuffix("\r")
    first, *rest = body.split("\t")
    command = body.lstrip().startswith("::")  # blanks and tabs before it do not matter
    shown = "\t".join(map(sanitize, (first, *rest)))
    return (shown.replace(":", r"\x3a", 1) if command else shown) + line[len(body) :]


def print_bytes(data: bytes) -> None:
    """Bytes on standard output, as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write(path: str, before: bytes, after: bytes, named: Sequence[str]) -> str | None:
    """Replace the content of a file and return None, or the reason if that was not done.

    `named` are the paths of the command line. Whoever names a directory wants the files in it changed, not others.
    """
    if path not in named and os.path.islink(path) and not _is_below(os.path.realpath(path), named):
        return "it is a symbolic link to a file elsewhere; to change that file, name the link or the file"
    try:
        replace(path, before, after)
    except NotReplacedError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_below(real: str, folders: Iterable[str]) -> bool:
    return any(real.startswith(f"{os.path.realpath(folder).rstrip('/')}/") for folder in folders)


def _text(data: bytes) -> str:
    text, encoding = decode(data)
    return ("\ufeff" if encoding == UTF_8_WITH_MARK else "") + text


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    from apflint.edit.line_diff import write_unified_diff  # few runs change anything

    old, new = (_shown(f"{side}/{_downward(name)}") for side in "ab")
    return write_unified_diff(_lines(before), _lines(after), old, new)


def _downward(name: str) -> str:
    """A path that only goes down, because `patch` and `git apply` take no other: from here, or from the root directory."""
    if ".." not in name.split("/"):
        return name.lstrip("/")
    folder, file = os.path.split(name)
    path = os.path.join(os.path.realpath(folder), file)  # `..` behind a link is not where it seems to be
    below = os.path.relpath(path, os.path.realpath(os.curdir)).replace(os.sep, "/")
    return path.lstrip("/") if below.startswith("../") else below


def _shown(path: str) -> str:
    """A path as git writes it in a diff: in quotes where it has such characters, and ended by a tab where it has blanks."""
    plain = path.isprintable() and not {'"', "\\"} & set(path)
    if plain:
        return f"{path}\t" if " " in path else path
    # Bytes, because that is how patch and git read the escapes; surrogates stand for bytes that are no UTF-8.
    escaped = (_ESCAPES.get(byte) or f"\\{byte:03o}" for byte in path.encode("utf-8", "surrogateescape"))
    return f'"{"".join(escaped)}"'


def _lines(text: str) -> list[str]:
    lines: Iterable[str] = io.StringIO(text, newline="\n")
    return list(lines)
