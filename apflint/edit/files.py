"""Decodes files, and replaces them atomically: at any moment a file has all of its old or all of its new content."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


class Encoding(NamedTuple):
    """The byte order mark of a text, which may be empty, and the codec of the rest."""

    mark: bytes
    codec: str

    def encode(self, text: str) -> bytes:
        """Encode a text. Raises UnicodeEncodeError."""
        return self.mark + text.encode(self.codec)


UTF_8_WITH_MARK = Encoding(*_BYTE_ORDER_MARKS[0])


class NotReplacedError(Exception):
    """A file was not replaced; the message is the reason, as a clause."""


def decode(data: bytes) -> tuple[str, Encoding]:
    """Return the text of a file, without its byte order mark, and how to encode it again. Raises UnicodeDecodeError."""
    encodings = (Encoding(mark, codec) for mark, codec in _BYTE_ORDER_MARKS if data.startswith(mark))
    encoding = next(encodings, Encoding(b"", "utf-8"))
    return data[len(encoding.mark) :].decode(encoding.codec), encoding


def replace(path: str, before: bytes, after: bytes) -> None:
    """Replace the content `before` of a file with `after`.

    The target of a symbolic link is replaced. Permissions are kept, and the owner if the system permits it. A signal
    that ends the process takes effect afterwards. Raises NotReplacedError if the file has changed or may not be
    written, and OSError.
    """
    from apflint.atomic_write import delay_termination  # imported only to write

    with delay_termination():
        _replace(path, before, after)


def _replace(path: str, before: bytes, after: bytes) -> None:
    import tempfile  # takes 5 ms, and is needed only to write

    real = os.path.realpath(path)
    status = os.stat(real)
    if not stat.S_ISREG(status.st_mode):
        raise NotReplacedError("it is not a regular file")
    if not os.access(real, os.W_OK):
        raise NotReplacedError("it is read-only")
    _require_content(real, before)
    directory, name = os.path.split(real)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".tmp", dir=directory)
    except OSError as error:
        raise NotReplacedError(f"cannot create a file in its directory: {error.strerror or error}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(after)
            file.flush()
            _copy_owner_and_mode(status, file.fileno())
            os.fsync(file.fileno())
        _require_content(real, before)  # again, as late as possible
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_directory(directory)


def _require_content(path: str, content: bytes) -> None:
    with open(path, "rb") as file:
        if file.read(len(content) + 1) != content:
            raise NotReplacedError("another process has changed it")


def _copy_owner_and_mode(status: os.stat_result, descriptor: int) -> None:
    current = os.fstat(descriptor)
    if (current.st_uid, current.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # after chown, which clears the set-user-id bits


def _sync_directory(directory: str) -> None:
    """Write the new directory entry to the disk, if the file system supports that."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
