"""Reads the bytes of input files and streams."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FILE_BYTES, MAX_SEARCHED_BYTES
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.sources.discovery import FoundFile

_CHUNK_BYTES = 512 * 1024  # fits into the cache of a processor
_OVERLAP_BYTES = 64  # longer than each of `_SIGNS`, so that a string on the border of two chunks is found

_SIGNS = (b"flowcontrol", b"FlowSchema", b"PriorityLevelConfiguration")
"""Strings that show an APF object. A file with an APF object contains one of them, unless it escapes letters."""
_SIGNS_BY_BOM = {
    b"\xff\xfe": tuple(sign.decode().encode("utf-16-le") for sign in _SIGNS),
    b"\xfe\xff": tuple(sign.decode().encode("utf-16-be") for sign in _SIGNS),
}
# Matches escaped letters, because an escaped letter could hide one of `_SIGNS`. `_SIGNS` contain only letters. So other
# escapes do not matter, although they are common: Go's JSON encoder escapes < > and &.
_ESCAPED_LETTER = re.compile(rb"\\(?:u00|x|U000000)[4-7]")

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
# Without O_NONBLOCK, opening a pipe that has replaced the file would wait for a writer.
_NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)

_FILE_TYPES = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a directory"),
)
_FAILURES = {
    errno.ENOENT: "No such file or directory.",
    errno.ENOTDIR: "No such file: a parent in the path is not a directory.",
    errno.EACCES: "Permission denied.",
    errno.EPERM: "Permission denied.",
    errno.ELOOP: "Symbolic link that refers back to itself.",
    errno.ENAMETOOLONG: "The name is longer than this system allows.",
}


class UnreadableInput(NamedTuple):
    """An input that cannot be read. The run continues with the other inputs, and ends with exit code 2."""

    reason: str
    """One or more sentences without the name of the file."""


def read_file(file: FoundFile) -> bytes | UnreadableInput:
    """Return the bytes of a file, or an `UnreadableInput` with the reason why the file cannot be read.

    Pipes, sockets and devices are rejected. The only exceptions are streams that the shell has opened: standard input
    (`-`, `/dev/stdin`), and streams such as `/dev/fd/63` from `<(helm template .)`.

    A file larger than `MAX_FILE_BYTES` is only searched for strings that show an APF object (`may_hold_apf`). If the
    file contains no such string, the result is empty bytes. If the file contains one, or if the file is larger than
    `MAX_SEARCHED_BYTES`, the result is `UnreadableInput`.
    """
    if file.problem:
        return UnreadableInput(file.problem)
    try:
        if file.path == "-" or is_stream(file.path):
            return _read_stream(file.path)
        descriptor = _open_regular(file.path)
        try:
            return _read_regular(descriptor)
        finally:
            os.close(descriptor)
    except UserError as error:  # standard input is closed, or the file is a pipe or a device
        return UnreadableInput(str(error))
    except (OSError, ValueError) as error:
        return UnreadableInput(describe_failure(file.path, error))


def open_without_waiting(path: str, flags: int) -> int:
    """Open a file, and return its descriptor. Neither this call nor reads from the descriptor wait for data.

    Pass this function to `open` as `opener`. If a file is opened in the usual way, reads may wait for data, even if it
    is a regular file, such as /proc/kmsg.
    """
    return os.open(path, flags | _NON_BLOCKING)


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file, or of standard input if `path` is `-`, as soon as they arrive.

    Raises OSError if the bytes cannot be read, and UserError if standard input is closed. Also raises UserError for
    pipes and devices that the shell has not opened, because nobody may ever write into them.
    """
    if path == "-":
        # Read sys.stdin instead of descriptor 0: if standard input was closed, descriptor 0 may be another file.
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise UserError("Standard input is closed. Connect it to a pipe or a file.")
        while piece := stream.read1(_CHUNK_BYTES):  # returns available bytes immediately, so that Ctrl-C works
            yield piece
        return
    descriptor = os.open(path, _OPEN_FLAGS) if is_stream(path) else _open_regular(path)
    try:
        while piece := os.read(descriptor, _CHUNK_BYTES):
            yield piece
    finally:
        os.close(descriptor)


def _open_regular(path: str) -> int:
    """Open a regular file without waiting, and return its descriptor.

    Raises OSError if the file cannot be opened, and UserError if the file is not a regular file.
    """
    mode = os.stat(path).st_mode  # test the type before opening the file, because opening some devices has side effects
    if stat.S_ISREG(mode):
        descriptor = os.open(path, _OPEN_FLAGS | _NON_BLOCKING)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return descriptor
        os.close(descriptor)
    raise UserError(_describe_type(mode))


def split_lines(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Join pieces of a stream, and yield lists of complete lines without line ends.

    Raises UserError if the stream is in UTF-16, and if a line is longer than `MAX_FILE_BYTES`.
    """
    parts: list[bytes] = []  # parts of the current line
    size = 0
    for number, piece in enumerate(pieces):
        if number == 0 and piece.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise UserError("the requests are in UTF-16; write them in UTF-8")
        parts.append(piece.removeprefix(b"\xef\xbb\xbf") if number == 0 else piece)
        size += len(piece)
        if b"\n" in piece:
            *lines, rest = b"".join(parts).split(b"\n")
            parts, size = [rest], len(rest)
            yield lines
        if size > MAX_FILE_BYTES:
            raise UserError(f"a line of the requests is longer than {MAX_FILE_BYTES >> 20} MiB")
    if rest := b"".join(parts):
        yield [rest]


def is_stream(path: str) -> bool:
    """Return whether a path is a stream that the shell has opened, such as `/dev/stdin` or `/dev/fd/63`."""
    return path == "/dev/stdin" or path.startswith(("/dev/fd/", "/proc/self/fd/"))


def may_hold_apf(data: bytes, signs: tuple[bytes, ...] = ()) -> bool:
    """Return whether the bytes of a file may contain an APF object. If false, the caller need not parse the file.

    The result is true if `data` contains one of `signs`. The default for `signs` is the names of the API group and of
    the kinds, in the encoding of `data`. The encoding is UTF-8, or UTF-16 after a byte order mark, as in Kubernetes'
    YAML parser. The result is also true if `data` contains an escaped letter, because one of the names may be written
    with escaped letters.
    """
    first, second, third = signs or _signs(data)
    return (
        first in data or second in data or third in data or (b"\\" in data and _ESCAPED_LETTER.search(data) is not None)
    )


def _signs(start: bytes) -> tuple[bytes, ...]:
    return _SIGNS_BY_BOM.get(start[:2], _SIGNS)


def describe_failure(path: str, error: OSError | ValueError) -> str:
    """Return a sentence that describes why the operating system could not read a file."""
    if not isinstance(error, OSError):
        return "No file can have this name."
    if error.errno == errno.ENOENT and os.path.islink(path):
        return "Symbolic link to something that does not exist."
    return _FAILURES.get(error.errno or 0, f"The operating system cannot read the file: {error.strerror or error}.")


def _read_regular(descriptor: int) -> bytes | UnreadableInput:
    size = os.fstat(descriptor).st_size
    if size > MAX_FILE_BYTES:
        return _search(descriptor, size)
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    # Read the rest: the file has grown, a network file system returned fewer bytes, or the file is in /proc and has size 0.
    chunks = [data]
    length = len(data)
    while data and length <= MAX_FILE_BYTES:
        data = os.read(descriptor, _CHUNK_BYTES)
        chunks.append(data)
        length += len(data)
    return b"".join(chunks) if length <= MAX_FILE_BYTES else _refuse_size(length)


def _search(descriptor: int, size: int) -> bytes | UnreadableInput:
    """Search a large file for strings that show an APF object, one chunk after the other.

    Return empty bytes if the file contains no such string, and `UnreadableInput` if it contains one.
    """
    if size > MAX_SEARCHED_BYTES:
        return _refuse_size(size)
    data = os.read(descriptor, _CHUNK_BYTES)
    signs = _signs(data)
    for _ in range(size // _CHUNK_BYTES + 1):
        if may_hold_apf(data, signs):
            return _refuse_size(size)
        data = data[-_OVERLAP_BYTES:] + os.read(descriptor, _CHUNK_BYTES)
    return b""


def _read_stream(path: str) -> bytes | UnreadableInput:
    chunks: list[bytes] = []
    length = 0
    for chunk in read_pieces(path):
        chunks.append(chunk)
        length += len(chunk)
        if length > MAX_FILE_BYTES:
            return UnreadableInput(
                f"The stream has more than {MAX_FILE_BYTES >> 20} MiB. Pass the objects in smaller parts."
            )
    return b"".join(chunks)


def _refuse_size(size: int) -> UnreadableInput:
    return UnreadableInput(
        f"The file has {size / 1_000_000:.0f} MB, but apflint reads at most {MAX_FILE_BYTES >> 20} MiB. Split the file, or"
        " use --exclude."
    )


def _describe_type(mode: int) -> str:
    kind = next((name for is_type, name in _FILE_TYPES if is_type(mode)), "not a regular file")
    return f"This is {kind}. To read the output of a command, pipe the output to apflint, and name the file `-`."
