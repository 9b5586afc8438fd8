"""Reads TOML files within bounds: they may come with an untrusted repository."""

from __future__ import annotations

import os
import re
import stat
import tomllib

from apflint.budgets import MAX_PYPROJECT_BYTES, MAX_SETTINGS_BYTES, MAX_SETTINGS_KEY_PARTS
from apflint.errors import UserError

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_TABLE = re.compile(rb"tool\.apflint|\[tool\]")
_OVERLAP = 16  # longer than what the pattern matches, so that it is found across two pieces of a file
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Without it, opening a named pipe waits for a writer forever.
_NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)


def parse_toml(data: bytes) -> dict[str, object]:
    """Parse a TOML text. Raises UserError if it is invalid or nested too deeply."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(str(error)) from None
    unquoted = _QUOTED.sub("", text) if text.count(".") > MAX_SETTINGS_KEY_PARTS else ""
    if any(line.count(".") > MAX_SETTINGS_KEY_PARTS for line in unquoted.splitlines()):
        raise UserError(f"a key has more than {MAX_SETTINGS_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for an integer of more than 4,300 digits
        raise UserError(str(error)) from None
    except RecursionError:
        raise UserError("nested too deeply") from None


def read_settings_bytes(path: str) -> bytes:
    """Return the bytes of a settings file. Raises UserError if it is too large or not a regular file, and OSError."""
    is_stream = path.startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/"))  # as in --config <(command)
    descriptor = os.open(path, _FLAGS if is_stream else _FLAGS | _NON_BLOCKING)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode) and not (is_stream and stat.S_ISFIFO(mode)):
            raise UserError(f"{path}: a settings file must be a regular file.")
        data = b""
        while len(data) <= MAX_SETTINGS_BYTES and (piece := os.read(descriptor, MAX_SETTINGS_BYTES + 1)):
            data += piece
    finally:
        os.close(descriptor)
    if len(data) > MAX_SETTINGS_BYTES:
        raise UserError(f"{path}: a settings file must not be larger than {MAX_SETTINGS_BYTES >> 10} KiB.")
    return data


def has_apflint_table(path: str) -> bool:
    """Whether a pyproject.toml has a table `[tool.apflint]`. Most have none, and those are not parsed.

    True also for invalid or huge files that mention the table: reading the file as settings reports what is wrong.
    """
    try:
        data = _read_if_mentioned(path)
    except OSError:
        return False  # the file of another tool, which this user may not read
    if not data:
        return data is not None
    try:
        tool = parse_toml(data).get("tool")
    except UserError:
        return True
    return isinstance(tool, dict) and "apflint" in tool


def _read_if_mentioned(path: str) -> bytes | None:
    """Return the text of a pyproject.toml that may have the table, or None if it has none.

    Returns b"" for a file of more than `MAX_SETTINGS_BYTES`, which cannot be used. Raises OSError.
    """
    descriptor = os.open(path, _FLAGS | _NON_BLOCKING)
    try:
        data = piece = os.read(descriptor, MAX_SETTINGS_BYTES + 1)
        size = len(data)
        while piece and not _TABLE.search(data) and size <= MAX_PYPROJECT_BYTES:
            piece = os.read(descriptor, MAX_SETTINGS_BYTES)
            data = data[-_OVERLAP:] + piece if size > MAX_SETTINGS_BYTES else data + piece
            size += len(piece)
        if not _TABLE.search(data) and size <= MAX_PYPROJECT_BYTES:
            return None
        return data if size <= MAX_SETTINGS_BYTES and not os.read(descriptor, 1) else b""
    finally:
        os.close(descriptor)
