"""The text of a file of settings. It may come with a repository that nobody has looked at yet, so there are bounds."""

from __future__ import annotations

import os
import re
import stat
import tomllib

LARGEST = 1 << 20
"""Bytes of a file of settings."""
DEEPEST = 100
"""Dots in a line, outside of quotes: what Python's parser needs for a key grows with the square of its parts."""

_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
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
        raise ValueError(f"{path}: this has more than {LARGEST >> 20} MiB, and no file of settings needs that.")
    return data


def table(data: bytes) -> dict[str, object]:
    """What a TOML text says. ValueError, fit to be shown, for what is none, and for what is nested too deeply."""
    text = data.decode("utf-8-sig")
    if text.count(".") > DEEPEST and any(line.count(".") > DEEPEST for line in _QUOTED.sub("", text).splitlines()):
        raise ValueError(f"a key of more than {DEEPEST} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
