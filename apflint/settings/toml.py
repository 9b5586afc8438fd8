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
    data = _read_at_most(path, MAX_SETTINGS_BYTES, is_stream=is_stream)
    if data is None:
        raise UserError(f"{path}: a settings file must not be larger than {MAX_SETTINGS_BYTES >> 10} KiB.")
    return data


def has_apflint_table(path: str) -> bool:
    """Whether a pyproject.toml has a table `[tool.apflint]`. Most have none, and those are not parsed.

    True also for invalid or huge files that may have the table: reading the file as settings reports what is wrong.
    """
    try:
        data = _read_at_most(path, MAX_PYPROJECT_BYTES)
    except (OSError, UserError):
        return False  # the file of another tool, which this user may not read
    if data is None or (_TABLE.search(data) and len(data) > MAX_SETTINGS_BYTES):
        return True
    try:
        tool = parse_toml(data).get("tool") if _TABLE.search(data) else None
    except UserError:
        return True
    return isinstance(tool, dict) and "apflint" in tool


def _read_at_most(path: str, maximum: int, *, is_stream: bool = False) -> bytes | None:
    """Return the bytes of a regular file or an open pipe, or None if there are more than `maximum`. Raises UserError, OSError."""
    descriptor = os.open(path, _FLAGS if is_stream else _FLAGS | _NON_BLOCKING)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not (is_stream and stat.S_ISFIFO(mode)):
        os.close(descriptor)
        raise UserError(f"{path}: a settings file must be a regular file.")
    with open(descriptor, "rb") as file:
        data = file.read(maximum + 1)
    return data if len(data) <= maximum else None
