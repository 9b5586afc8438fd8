"""Files and standard input as they arrive: pieces of bytes, and whole lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FILE_BYTES
from apflint.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECE_BYTES = 1 << 20


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file, or of standard input for `-`, as they arrive.

    Raises OSError if they cannot be read, and UserError if standard input is closed.
    """
    if path == "-":
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise UserError("standard input is closed: connect it to a pipe or a file")
        while piece := stream.read1(_PIECE_BYTES):
            yield piece
        return
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def split_lines(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the whole lines of each piece, without their newlines.

    Raises UserError for UTF-16, and for a line without end.
    """
    parts: list[bytes] = []  # of a line that has not ended yet
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
