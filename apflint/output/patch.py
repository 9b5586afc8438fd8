"""Edits of a file as a patch: a unified diff that `patch` and `git apply` read."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from apflint.edit.file_content import UTF_8_WITH_MARK, decode
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPES = {byte: chr(byte) for byte in range(0x20, 0x7F)} | {0x22: '\\"', 0x5C: "\\\\"}
"""Text for each printable ASCII byte of a quoted path: the character or an escape. All other bytes become octal escapes."""


def render_patch(name: str, before: bytes, after: bytes) -> Iterator[str]:
    """Yield the lines of a patch without newlines. A carriage return and a byte order mark stay in the lines."""
    from apflint.edit.line_diff import write_unified_diff  # imported on demand: most runs print no patch

    old_name, new_name = (_quote_path(f"{side}/{_make_relative(name)}") for side in "ab")
    for line in write_unified_diff(_split_lines(before), _split_lines(after), old_name, new_name):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def sanitize_patch_line(line: str) -> str:
    """Escape CI commands in a line of a patch, such as the context line ` ::add-mask::x`.

    Tabs and a carriage return at the end are kept.
    """
    body = line.removesuffix("\r")
    safe = "\t".join(map(sanitize, body.split("\t")))
    if body.lstrip().startswith("::"):
        safe = safe.replace(":", r"\x3a", 1)
    return safe + line[len(body) :]


def _split_lines(data: bytes) -> list[str]:
    text, encoding = decode(data)
    mark = "\ufeff" if encoding == UTF_8_WITH_MARK else ""
    return list(io.StringIO(mark + text, newline="\n"))


def _make_relative(name: str) -> str:
    """Return a path without `..`, because `patch` and `git apply` reject paths with `..`.

    The result is relative to the current directory. If the file is outside the current directory, it is relative to `/`.
    """
    if ".." not in name.split("/"):
        return name.lstrip("/")
    directory, file = os.path.split(name)
    path = os.path.join(os.path.realpath(directory), file)  # `..` after a symbolic link means the parent of its target
    below = os.path.relpath(path, os.path.realpath(os.curdir)).replace(os.sep, "/")
    return path.lstrip("/") if below.startswith("../") else below


def _quote_path(path: str) -> str:
    """Return a path as git writes it in a diff: quoted if it has special characters, and with a final tab if it has spaces."""
    if path.isprintable() and not {'"', "\\"} & set(path):
        return f"{path}\t" if " " in path else path
    # patch and git decode the escapes to bytes. Lone surrogates in `path` stand for bytes that are not UTF-8, so encode them
    # to these bytes.
    escaped = (_ESCAPES.get(byte) or f"\\{byte:03o}" for byte in path.encode("utf-8", "surrogateescape"))
    return f'"{"".join(escaped)}"'
