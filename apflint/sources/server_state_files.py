"""Reads the metrics and dumps of API servers from files and directories. Files may be compressed."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from typing import TYPE_CHECKING

from apflint.budgets import MAX_METRICS_BYTES
from apflint.doctor.snapshot import is_server_file, parse_part
from apflint.sources.file_reading import describe_failure, read_pieces
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.doctor.snapshot import Part

_START_BYTES = 64 * 1024
_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
"""Value of `wbits` for zlib: the data has a gzip header."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16, which PowerShell writes."""


def read_parts(paths: Iterable[str]) -> tuple[Part, ...]:
    """Return the metrics and dumps in these files and directories. Other files in a directory are ignored.

    `-` is standard input. Raises UserError if a file cannot be read, or if a directory has neither metrics nor dumps.
    The message names the file or directory.
    """
    names = list(paths)
    if names.count("-") > 1:
        raise UserError("standard input (-) can be read only once")
    return tuple(part for path in names for part in _read_path(path))


def _read_path(path: str) -> Iterator[Part]:
    if not os.path.isdir(path):
        yield parse_part("<stdin>" if path == "-" else path, decode(_read(path)))
        return
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    files = [file for name in names if os.path.isfile(file := os.path.join(path, name))]
    parts = [parse_part(file, decode(_read(file))) for file in files if is_server_file(decode(_read_start(file)))]
    if not parts:
        raise UserError(
            f"{path}: the directory has no metrics and no dumps of an API server. For manifests, use -f {path}"
        )
    yield from parts


def decode(data: bytes) -> str:
    """Return the text of metrics or a dump, without a byte order mark. Bytes that are not text are replaced."""
    return data.decode("utf-16" if data.startswith(_UTF16) else "utf-8", "replace").removeprefix("\ufeff")


def _read_start(path: str) -> bytes:
    """Return the start of a file, decompressed, from which the kind of the file can be recognized.

    A compressed file that is incomplete is not an error here. Reading the complete file later reports the error.
    """
    try:
        data = next(read_pieces(path), b"")[:_START_BYTES]
    except OSError as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    if not data.startswith(_GZIP):
        return data
    try:
        return zlib.decompressobj(_GZIP_FORMAT).decompress(data, _START_BYTES)
    except zlib.error:
        return b""


def _read(path: str) -> bytes:
    """Return the decompressed bytes of a file or of standard input."""
    try:
        data = _read_at_most(path, MAX_METRICS_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(
            f"{path}: the compressed file is incomplete or damaged: save the metrics or the dump again"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    except UserError as error:  # standard input is closed, or the file is a pipe or a device
        raise UserError(f"{'<stdin>' if path == '-' else path}: {error}") from None
    if len(data) > MAX_METRICS_BYTES:
        raise UserError(
            f"{path}: the file has more than {MAX_METRICS_BYTES >> 20} MiB. Keep only the lines that are needed: grep -E"
            " '^(apiserver_flowcontrol_|process_start_time_seconds|kubernetes_build_info)'"
        )
    return data


def _read_at_most(path: str, limit: int) -> bytes:
    """Return the first `limit` decompressed bytes of a file or of standard input, or all bytes if there are fewer."""
    pieces: list[bytes] = []
    size = 0
    for piece in read_pieces(path):
        pieces.append(piece)
        size += len(piece)
        if size >= limit:
            break
    data = b"".join(pieces)
    if not data.startswith(_GZIP):
        return data[:limit]
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as compressed:
        return compressed.read(limit)  # limited, because a compressed file may expand without bound
