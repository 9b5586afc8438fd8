"""Decodes files and writes new content to files, unless the files changed after they were read."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


class FileEncoding(NamedTuple):
    """The encoding of a file: the byte order mark, which may be empty, and the Python codec for the text after the mark."""

    mark: bytes
    codec: str

    def encode(self, text: str) -> bytes:
        """Return the byte order mark and the encoded text. Raises UnicodeEncodeError if the text contains a lone surrogate."""
        return self.mark + text.encode(self.codec)


UTF_8_WITH_MARK = FileEncoding(*_BYTE_ORDER_MARKS[0])


class NotReplacedError(Exception):
    """Raised if a file is not replaced. The message is a clause that states the reason."""


def decode(data: bytes) -> tuple[str, FileEncoding]:
    """Return text (without byte order mark) and encoding of a file. Raises UnicodeDecodeError if the bytes are invalid."""
    encodings = (FileEncoding(mark, codec) for mark, codec in _BYTE_ORDER_MARKS if data.startswith(mark))
    encoding = next(encodings, FileEncoding(b"", "utf-8"))
    return data[len(encoding.mark) :].decode(encoding.codec), encoding


def replace(path: str, before: bytes, after: bytes) -> None:
    """Atomically replace the content of a regular file by `after`, but only if the content is still `before`.

    Raises NotReplacedError if the content has changed, or if the file is not a regular file or is not writable. Raises
    OSError for other failures.
    """
    from apflint.atomic_write import write_atomically  # imported here, because most commands write no files

    def require_unchanged() -> None:
        with open(path, "rb") as file:
            if file.read(len(before) + 1) != before:
                raise NotReplacedError("another process has changed it")

    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotReplacedError("it is not a regular file")
    if not os.access(path, os.W_OK):
        raise NotReplacedError("it is read-only")
    require_unchanged()
    try:
        write_atomically(path, after, require_unchanged)
    except PermissionError as error:
        raise NotReplacedError(f"cannot create a file in the same directory: {error.strerror or error}") from None
