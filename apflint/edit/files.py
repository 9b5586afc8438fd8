"""Bytes and text, and the replacement of files: all of the new content or all of the old, at any moment."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


class Encoding(NamedTuple):
    """How a text was encoded: the byte order mark it began with, and the codec of the rest."""

    mark: bytes
    codec: str

    def encode(self, text: str) -> bytes:
        """The bytes of a text."""
        return self.mark + text.encode(self.codec)


UTF_8_WITH_MARK = Encoding(*_MARKS[0])


class NotReplacedError(ValueError):
    """Why a file was left as it is: a sentence without its end."""


def decode(data: bytes) -> tuple[str, Encoding]:
    """The text of a file, without a byte order mark, and how to encode it again. UnicodeDecodeError where it is none."""
    encoding = next((Encoding(mark, codec) for mark, codec in _MARKS if data.startswith(mark)), Encoding(b"", "utf-8"))
    return data[len(encoding.mark) :].decode(encoding.codec), encoding


def replace(path: str, before: bytes, after: bytes) -> None:
    """Replaces the content `before` of a file with `after`: beside it, written out, and put in its place at once.

    A symbolic link stays, and what it leads to is replaced. Permissions are kept, and the owner as far as the system lets
    us. A signal that ends the process does so afterwards. NotReplacedError where the file is no longer what was read, or may not be written; OSError from the system.
    """
    from apflint.signals import delay_termination  # only where something is written

    with delay_termination():
        _replace(path, before, after)


def _replace(path: str, before: bytes, after: bytes) -> None:
    import tempfile  # 5 ms, and only where something is written

    real = os.path.realpath(path)
    status = os.stat(real)
    if not stat.S_ISREG(status.st_mode):
        raise NotReplacedError("it is no regular file")
    if not os.access(real, os.W_OK):
        raise NotReplacedError("it is read-only")
    _expect(real, before)
    folder, name = os.path.split(real)
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise NotReplacedError(f"no file can be made beside it: {error.strerror or error}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(after)
            file.flush()
            _adopt(file.fileno(), status)
            os.fsync(file.fileno())
        _expect(real, before)  # again, as late as can be: the writing may have taken a while
        os.replace(beside, real)
    except BaseException:
        os.unlink(beside)
        raise
    _settle(folder)


def _expect(path: str, content: bytes) -> None:
    with open(path, "rb") as file:
        if file.read(len(content) + 1) != content:
            raise NotReplacedError("it was changed by somebody else meanwhile")


def _adopt(descriptor: int, status: os.stat_result) -> None:
    """Owner and permissions of the file that is replaced; chown first, because it clears the set-user-id bits."""
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):  # only root may give files away
            os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _settle(folder: str) -> None:
    """Has the new entry of the folder written to the disk, where the file system can do that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
