"""Reads and parses TOML files, whose size is limited because of untrusted repositories."""

from __future__ import annotations

import os
import re
import stat

from apflint.budgets import MAX_SETTINGS_BYTES, MAX_SETTINGS_KEY_PARTS
from apflint.user_error import UserError

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)


def read_toml(path: str) -> dict[str, object]:
    """Return the values in a settings file.

    Raises UserError if the file is too large, not a regular file, or invalid. Raises OSError if the file cannot be
    read.
    """
    # The shell replaces `<(command)` in `--config <(command)` by a path such as /dev/fd/63.
    is_stream = path.startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/"))
    data = read_at_most(path, MAX_SETTINGS_BYTES, is_stream=is_stream)
    if data is None:
        raise UserError(f"{path}: a settings file must not be larger than {MAX_SETTINGS_BYTES >> 10} KiB.")
    try:
        return parse_toml(data)
    except UserError as error:
        raise UserError(f"{path}: invalid TOML: {error}") from None


def parse_toml(data: bytes) -> dict[str, object]:
    """Parse TOML. Raises UserError if the text is invalid or nested too deeply, or if a key has too many parts."""
    import tomllib  # imported here, because a run without a settings file does not need it

    try:
        text = data.decode("utf-8-sig")
        unquoted = _QUOTED.sub("", text) if text.count(".") > MAX_SETTINGS_KEY_PARTS else ""
        if any(line.count(".") > MAX_SETTINGS_KEY_PARTS for line in unquoted.splitlines()):
            raise UserError(f"a key has more than {MAX_SETTINGS_KEY_PARTS} parts")
        return tomllib.loads(text)
    except ValueError as error:  # also raised for bytes that are not UTF-8, and for integers with over 4,300 digits
        raise UserError(str(error)) from None
    except RecursionError:
        raise UserError("nested too deeply") from None


def read_at_most(path: str, maximum: int, *, is_stream: bool = False) -> bytes | None:
    """Return the bytes of a settings file, or None if the file has more than `maximum` bytes.

    Raises UserError if the file is neither a regular file nor a pipe, and also for a pipe if
    `is_stream` is false. Raises OSError if the file cannot be opened.
    """
    descriptor = os.open(path, _FLAGS if is_stream else _FLAGS | _NON_BLOCKING)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not (is_stream and stat.S_ISFIFO(mode)):
        os.close(descriptor)
        raise UserError(f"{path}: a settings file must be a regular file.")
    with open(descriptor, "rb") as file:
        data = file.read(maximum + 1)
    if data is None:  # the file, such as /proc/kmsg, has no data now, and reading it would wait
        raise UserError(f"{path}: a settings file must be a regular file.")
    return data if len(data) <= maximum else None
