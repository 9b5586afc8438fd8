"""The file system through which DuckDB reads lines with a prefix: each prefix is replaced by as many spaces.

JSON permits spaces before a value, so DuckDB reads such lines like a plain log. Unlike `duckdb_wrappers`, this module
needs no temporary file. A line with another prefix stays as it is, so that DuckDB reports an error.
"""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, cast

from fsspec import AbstractFileSystem

if TYPE_CHECKING:
    from typing import BinaryIO

    from apflint.requests.log_wrappers import Wrapper

_PIECE_BYTES = 1 << 18
"""Number of bytes in which prefixes are replaced at once.

The memory of larger pieces is returned to the system after each piece, which takes more time than replacing the prefixes.
"""
_MAX_PREFIX_BYTES = 512
"""Maximum length of a prefix. A longer prefix may stay in part, so that DuckDB reports an error."""
_BLANKS = [b"\n".ljust(size) for size in range(_MAX_PREFIX_BYTES)]
"""For each length, a line break and spaces."""


class PrefixFileSystem(AbstractFileSystem):
    """File system through which DuckDB reads log lines whose prefixes are replaced by spaces.

    In the paths for DuckDB, numbers stand for the names of the files.
    """

    protocol = "apflint-prefix"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._files: list[tuple[str, int, Wrapper]] = []

    def add(self, path: str, wrapper: Wrapper) -> str:
        """Register a log file, and return the path under which DuckDB opens the file.

        Each line of the file has a prefix in the format of `wrapper` before its JSON text. Raises OSError
        if the file is missing.
        """
        self._files.append((path, os.path.getsize(path), wrapper))
        return f"{self.protocol}://{len(self._files) - 1}"

    def info(self, path: str, **_: object) -> dict[str, object]:
        """Return the size of a file, as fsspec describes files."""
        return {"name": path, "size": self._find(path)[1], "type": "file"}

    def _open(self, path: str, mode: str = "rb", **_: object) -> BinaryIO:  # noqa: ARG002  # DuckDB only reads
        return cast("BinaryIO", _PrefixFile(*self._find(path)))

    def _find(self, path: str) -> tuple[str, int, Wrapper]:
        return self._files[int(self._strip_protocol(path))]


class _PrefixFile(io.RawIOBase):
    """A file in which the prefix of each line is replaced by spaces."""

    def __init__(self, path: str, size: int, wrapper: Wrapper) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # `close` closes it
        self._size = size
        self._position = 0
        self._replace_prefixes = compile_prefix(wrapper).sub

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes. All of the requested bytes are returned, except at the end of the file."""
        end = self._size if size < 0 else min(self._position + size, self._size)
        pieces = []
        while self._position < end:
            piece = self._read_piece(self._position, min(self._position + _PIECE_BYTES, end))
            if not piece:  # another process has truncated the file
                break
            pieces.append(piece)
            self._position += len(piece)
        return b"".join(pieces)

    def _read_piece(self, start: int, end: int) -> bytes:
        first = max(0, start - _MAX_PREFIX_BYTES - 1)
        self._file.seek(first)
        data = self._file.read(end + _MAX_PREFIX_BYTES - first)
        if not first:
            data = b"\n" + data
            first = -1
        return self._replace_prefixes(_make_blank, data)[start - first : end - first]

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Change the position, and return it."""
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readable(self) -> bool:
        """Return True, because the file is open for reading."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _make_blank(match: re.Match[bytes]) -> bytes:
    size = match.end() - match.start()
    return _BLANKS[size] if size < len(_BLANKS) else b"\n".ljust(size)


def compile_prefix(wrapper: Wrapper) -> re.Pattern[bytes]:
    """Return a pattern that matches a line break, and the prefix between the line break and an event."""
    prefix = wrapper.prefix.replace("[^", "[^\n").replace("\ufeff", "(?:\ufeff)")
    prefix = re.sub(r"(?<!\\)\((?!\?)", "(?:", prefix)  # groups without capture are faster
    return re.compile(b"\n(?:" + prefix.encode() + b")(?=[{])")
