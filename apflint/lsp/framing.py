"""Reads the headers of protocol messages: tolerant of how they are written, strict about how much may follow.

pygls takes only `Content-Length: N` in this case and with CR LF, ignores everything else, and passes any N to `read`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.report.terminal import visible

if TYPE_CHECKING:
    from typing import BinaryIO

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Size of the largest message. An editor sends a whole document at most, and files above 32 MiB are not read either."""
_MAX_HEADER_BYTES = 4096
_SHOWN_BYTES = 60


class MessageReader:
    """A binary stream as pygls reads it, with all headers in the one form that pygls knows."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ends_headers = False
        self._has_reported = False
        self.is_broken = False
        """Whether reading ended early, because it is unknown where the next message starts."""

    def readline(self) -> bytes:
        """Return the next header line, or nothing at the end of the stream."""
        if self._ends_headers:
            self._ends_headers = False
            return b"\r\n"
        length = self._read_headers()
        self._ends_headers = bool(length)
        return b"Content-Length: %d\r\n" % length if length else b""

    def read(self, size: int) -> bytes:
        """Return the body of a message."""
        return self._stream.read(size)

    def _read_headers(self) -> int:
        """Return the length of the next message, or 0 at the end of the stream."""
        length = 0
        while not self.is_broken and (line := self._stream.readline(_MAX_HEADER_BYTES)):
            if not line.strip():
                if length:
                    return length
                continue
            name, _, value = line.partition(b":")
            name, value = name.strip().lower(), value.strip()
            if name == b"content-length":
                length = self._parse_length(value)
            elif name != b"content-type":
                self._report(f'expected the header "Content-Length: N", got "{_shown(line.strip())}"')
        return 0

    def _parse_length(self, value: bytes) -> int:
        if not value.isdigit():
            self._report(f'Content-Length "{_shown(value)}" is not a number; the language server ends')
        elif len(value) > len(str(MAX_MESSAGE_BYTES)) or int(value) > MAX_MESSAGE_BYTES:
            self._report(
                f"Content-Length {_shown(value)} is greater than {MAX_MESSAGE_BYTES:,}; the language server ends"
            )
        else:
            return int(value)
        self.is_broken = True
        return 0

    def _report(self, problem: str) -> None:
        """Print the first problem: more of them are the same mistake."""
        if not self._has_reported:
            self._has_reported = True
            sys.stderr.write(f"apflint: {visible(problem)}\n")


def _shown(value: bytes) -> str:
    text = value[:_SHOWN_BYTES].decode("utf-8", "replace")
    return text if len(value) <= _SHOWN_BYTES else f"{text}..."
