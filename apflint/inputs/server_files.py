"""Reads the metrics and dumps of API servers from files, which may be compressed, and from directories."""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import ExitStack
from typing import TYPE_CHECKING

from apflint.budgets import MAX_METRICS_BYTES
from apflint.doctor.snapshot import is_server_file, parse_part
from apflint.errors import UserError
from apflint.inputs.reading import describe_failure, read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.doctor.snapshot import Part

_HEAD_BYTES = 64 * 1024
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""Start of a file that PowerShell has written."""


def read_parts(paths: Iterable[str]) -> tuple[Part, ...]:
    """Return the metrics and dumps in these files and directories. Of a directory, other files are ignored.

    `-` is standard input. Raises UserError, with the name of the file, for a file that cannot be read, and for a directory
    without metrics and dumps.
    """
    return tuple(part for path in paths for part in _read_path(path))


def _read_path(path: str) -> Iterator[Part]:
    if not os.path.isdir(path):
        yield parse_part("<stdin>" if path == "-" else path, _decode(_read(path)))
        return
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    files = [file for name in names if os.path.isfile(file := os.path.join(path, name))]
    parts = [parse_part(file, _decode(_read(file))) for file in files if is_server_file(_decode(_read_head(file)))]
    if not parts:
        raise UserError(f"{path}: the directory has no metrics and no dumps of an API server")
    yield from parts


def _decode(data: bytes) -> str:
    return data.decode("utf-16" if data.startswith(_UTF16) else "utf-8", "replace").removeprefix("\ufeff")


def _read_head(path: str) -> bytes:
    """Return the start of a file of a directory. An incomplete file is no reason to ignore it."""
    try:
        return _read_file(path, _HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def _read(path: str) -> bytes:
    """Return the bytes of a file or of standard input, uncompressed."""
    try:
        data = _read_stream() if path == "-" else _read_file(path, MAX_METRICS_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(f"{path}: the compressed file is incomplete or damaged: save it again") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    if len(data) > MAX_METRICS_BYTES:
        raise UserError(
            f"{path}: more than {MAX_METRICS_BYTES >> 20} MiB. Keep only the lines that are needed: grep -E"
            " '^(apiserver_flowcontrol_|process_start_time_seconds|kubernetes_build_info)'"
        )
    return data


def _read_stream() -> bytes:
    chunks: list[bytes] = []
    size = 0
    for piece in read_pieces("-"):
        chunks.append(piece)
        size += len(piece)
        if size > MAX_METRICS_BYTES:
            break
    data = b"".join(chunks)
    return gzip.decompress(data) if data.startswith(_GZIP) else data


def _read_file(path: str, size: int) -> bytes:
    with ExitStack() as stack:
        file = stack.enter_context(open(path, "rb"))
        start = file.read(len(_GZIP))
        file.seek(0)
        return stack.enter_context(gzip.GzipFile(fileobj=file)).read(size) if start == _GZIP else file.read(size)
