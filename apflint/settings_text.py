"""The text of a file of settings. It may come with a repository that nobody has looked at yet, so there are bounds."""

from __future__ import annotations

import os
import re
import stat
import tomllib

LARGEST = 256 * 1024
"""Bytes of a settings file. Python's parser takes three seconds for 1 MiB."""
LONGEST_LOOK = 64 * 1024 * 1024
"""Bytes of a pyproject.toml, which may be another tool's, that are searched for a table of ours."""
DEEPEST = 100
"""Dots in a line, outside of quotes: what Python's parser needs for a key grows with the square of its parts."""

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_SIGN = re.compile(rb"tool\.apflint|\[tool\]")
_SIGN_LENGTH = 16
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Without this, opening a pipe waits for a writer for ever.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def content(path: str) -> bytes:
    """The bytes of a file. ValueError, fit to be shown, for what is no file of settings; OSError where it cannot be opened."""
    stream = path.startswith(
        ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
    )  # what a shell has opened: --config <(command)
    descriptor = os.open(path, _FLAGS if stream else _FLAGS | _AT_ONCE)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode) and not (stream and stat.S_ISFIFO(mode)):
            raise ValueError(f"{path}: this is {'a directory' if stat.S_ISDIR(mode) else 'no regular file'}.")
        data = b""
        while len(data) <= LARGEST and (piece := os.read(descriptor, LARGEST + 1)):
            data += piece
    finally:
        os.close(descriptor)
    if len(data) > LARGEST:
        raise ValueError(f"{path}: this has more than {LARGEST >> 10} KiB, and no settings file needs that.")
    return data


def mentions(path: str) -> bytes | None:
    """Return the text of a pyproject.toml if it may have a table of ours, or None. Reads no more than `LONGEST_LOOK`.

    Of a larger file than `LARGEST` it is b"": `content` has the reason to refuse it. OSError if it cannot be opened.
    """
    descriptor = os.open(path, _FLAGS | _AT_ONCE)
    try:
        data = piece = os.read(descriptor, LARGEST + 1)
        size = len(data)
        while piece and not _SIGN.search(data) and size <= LONGEST_LOOK:
            piece = os.read(descriptor, LARGEST)
            data = data[-_SIGN_LENGTH:] + piece if size > LARGEST else data + piece
            size += len(piece)
        if not _SIGN.search(data) and size <= LONGEST_LOOK:
            return None
        return data if size <= LARGEST and not os.read(descriptor, 1) else b""
    finally:
        os.close(descriptor)


def table(data: bytes) -> dict[str, object]:
    """What a TOML text says. ValueError, fit to be shown, for what is none, and for what is nested too deeply."""
    text = data.decode("utf-8-sig")
    if text.count(".") > DEEPEST and any(line.count(".") > DEEPEST for line in _QUOTED.sub("", text).splitlines()):
        raise ValueError(f"a key of more than {DEEPEST} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
