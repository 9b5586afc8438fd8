"""Finds the files of audit logs, and reads their lines.

Files may be compressed with gzip or Zstandard, and may grow while they are read. Files may be objects in object
storage.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
import sys
import zlib
from typing import TYPE_CHECKING

from apflint.budgets import MAX_EXPANDED_BYTES, MAX_EXPANSION, MAX_FILE_BYTES
from apflint.load.source_text import STDIN
from apflint.named_tuple import NamedTuple
from apflint.sources.file_reading import describe_failure, is_stream, read_pieces
from apflint.sources.log_names import ENDING, LOG_NAME, WHOLE_LOG, OmittedObjects, ReadPeriod, remove_times, select_logs
from apflint.sources.object_storage import (
    find_prefix,
    hide_secrets,
    is_object_url,
    is_web_url,
    list_objects,
    read_object,
)
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any, BinaryIO

_ROTATION = re.compile(rf"(-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{{3}})?{ENDING}(\.gz|\.zst)?$")
"""Suffix that log rotation adds to a file name.

kube-apiserver rotates `audit.log` to `audit-2026-11-22T05-49-20.098.log`.

Source: `backupName` in gopkg.in/natefinch/lumberjack.v2. logrotate appends numbers or dates.
"""
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
_COMPRESSED_PIECE_BYTES = 1024
"""Number of compressed bytes to decompress in one step. In Zstandard, 4 bytes may expand to 128 KiB."""
_REPORTED_BYTES = 64 * 1024
"""Maximum number of compressed bytes between two reports of the progress. They may expand to many megabytes."""
_BEGINNING_BYTES = 64 * 1024
_TEXT_PIECE_BYTES = 512 * 1024
"""Size of the blocks of decompressed text in bytes. The engine that analyzes a block needs memory for all of its lines.
"""


class AuditLogFile(NamedTuple):
    """A file of an audit log."""

    name: str
    """Name for messages: the path, or `<stdin>`."""
    path: str
    """The path to open, or `-` for standard input."""
    inode: tuple[int, int] | None = None
    """Device and inode, to find the file again if log rotation renames it before apflint reads it.

    None for streams and for objects in object storage."""
    size: int = 0
    """Size in bytes, 0 for streams."""
    beginning: bytes = b""
    """The first bytes of a stream, if `read_beginning` has read them."""
    rest: Iterator[bytes] | None = None
    """The bytes of the stream after `beginning`. None if `beginning` was not read."""

    @property
    def server(self) -> str:
        """Name of the API server that wrote the file: the path without the parts that change when a log is rotated."""
        return remove_times(self.name) if is_url(self.name) else _ROTATION.sub("", self.name)

    @property
    def is_object(self) -> bool:
        """Return whether the file is an object in object storage."""
        return self.inode is None and is_object_url(self.path)

    @property
    def is_remote(self) -> bool:
        """Return whether Spark can read the file itself, because the path is a URL of object storage."""
        return self.inode is None and is_url(self.path) and not is_web_url(self.path)

    @property
    def is_stream(self) -> bool:
        """Return whether the file can be read only once."""
        return self.inode is None and not is_url(self.path)


def find_total_size(files: Collection[AuditLogFile]) -> int:
    """Return the total size of files in bytes. A compressed file counts with its compressed size.

    Return 0 if the size is unknown, because a file is a stream, or a URL that Spark lists.
    """
    is_known = all(file.inode is not None or file.size for file in files)
    return sum(file.size for file in files) if is_known else 0


class Block(NamedTuple):
    """Complete lines of a file, or the reason why a line or the rest of the file is not read."""

    data: bytes
    """The lines. The last line may have no newline."""
    problem: str = ""
    """Clause that explains why a line is skipped, or why the file ends here. Empty if there is no problem."""
    is_file_problem: bool = False
    """Whether the rest of the file cannot be read. If false, only one line is skipped."""


def find_audit_logs(
    paths: Iterable[str],
    *,
    period: ReadPeriod = WHOLE_LOG,
    report_omitted: Callable[[OmittedObjects], object] = lambda _: None,
    keeps_urls: bool = False,
) -> list[AuditLogFile]:
    """Return the files of an audit log, each once. `paths` are files, directories, glob patterns, `-`, or URLs.

    If a URL is a prefix, the result omits objects below the prefix whose names are not names of logs, or contain times
    outside of `period`. `report_omitted` is called with the omitted objects. If `keeps_urls` is true, URLs of object
    storage are returned unchanged, because Spark lists the objects itself.

    Raises UserError for a path that does not exist or cannot be read, and for a directory that contains no log files.
    """
    files: dict[object, AuditLogFile] = {}
    for path in paths:
        if keeps_urls and is_url(path) and not is_web_url(path):
            files[path] = AuditLogFile(path, path)
            continue
        if is_object_url(path):
            for file in _find_objects(path, period, report_omitted):
                files.setdefault(file.path, file)
            continue
        if is_url(path):
            raise UserError(f"{path}: only --engine spark reads {path.partition('://')[0]}:// URLs")
        if path == "-" or is_stream(path):
            if path == "-" and getattr(sys.stdin, "buffer", None) is None:
                raise UserError("<stdin>: Standard input is closed. Connect it to a pipe or a file.")
            files[path] = AuditLogFile(STDIN if path == "-" else path, path)
            continue
        names = [path]
        if not os.path.lexists(path) and glob.has_magic(path):
            names = sorted(glob.glob(path, recursive=True))
            if not names:
                raise UserError(f"{path}: no file matches this pattern")
        for name in names:
            for file in _list_files(name):
                files.setdefault(file.inode, file)
    return list(files.values())


def is_url(path: str) -> bool:
    """Return whether a path is a URL such as `s3a://bucket/path`."""
    return _URL.match(path) is not None


def _find_objects(url: str, period: ReadPeriod, report: Callable[[OmittedObjects], object]) -> list[AuditLogFile]:
    """Return the objects that a URL names. If the URL is a prefix, return only objects that `select_logs` selects.

    `report` is called with the objects that are not selected.
    """
    found = list_objects(url)
    if not found:
        raise UserError(f"{url}: no object has this URL, is below this prefix or matches this pattern")
    is_prefix = find_prefix(url) == url and [stored.url for stored in found] != [url]
    if is_prefix:
        found = select_logs(url, found, period, report)
    return [AuditLogFile(hide_secrets(stored.url), stored.url, None, stored.size) for stored in found]


def _list_files(path: str) -> Iterator[AuditLogFile]:
    try:
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            if not stat.S_ISREG(status.st_mode):
                raise UserError(
                    f"{path}: this is not a regular file. To read the output of a command, pipe the output to apflint, and name the file `-`."
                )
            yield AuditLogFile(path, path, (status.st_dev, status.st_ino), status.st_size)
            return
        found = False
        for directory, subdirectories, names in os.walk(path, onerror=_raise):
            subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
            for name in sorted(names):
                full = os.path.join(directory, name)
                if LOG_NAME.search(name) and not name.startswith(".") and os.path.isfile(full):
                    status = os.stat(full)
                    found = True
                    yield AuditLogFile(full, full, (status.st_dev, status.st_ino), status.st_size)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    if not found:
        os.getcwd()  # if the current directory was deleted, raise OSError instead of the UserError below
        raise UserError(f"{path}: this directory has no file of an audit log, such as audit.log or audit.log.gz")


def _raise(error: OSError) -> None:
    raise error


def read_beginning(file: AuditLogFile) -> AuditLogFile:
    """Read the beginning of a stream, from which its format can be recognized.

    Return a copy of `file` with `beginning` and `rest`. If `file` is not a stream, or cannot be read, return `file`
    unchanged.
    """
    if not file.is_stream:
        return file
    pieces = read_pieces(file.path)
    beginning = b""
    try:
        while len(beginning) < _BEGINNING_BYTES and (piece := next(pieces, b"")):
            beginning += piece
    except (OSError, UserError):
        return file  # the reader of the events reports the problem
    return file._replace(beginning=beginning, rest=pieces)


def read_log_pieces(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file or of standard input.

    If reading fails, raise UserError with the name of the file.
    """
    try:
        yield from _decompress(read_pieces(path))
    except OSError as error:
        raise UserError(f"{path}: {describe_failure(path, error)}") from None
    except UserError as error:
        raise UserError(f"{STDIN if path == '-' else path}: {error}") from None


def _read_raw(file: AuditLogFile) -> Iterator[bytes]:
    """Yield the bytes of a file without decompressing them."""
    if file.is_object:
        return read_object(file.path, file.size)
    return read_pieces(locate(file)) if file.rest is None else _chain(file.beginning, file.rest)


def locate(file: AuditLogFile) -> str:
    """Return the current path of a file. If the file was rotated, return its new path in the same directory.

    Raises UserError if the file no longer exists.
    """
    if file.inode is None:
        return file.path
    if _find_inode(file.path) == file.inode:
        return file.path
    directory = os.path.dirname(file.path) or "."
    try:  # list the directory only for rotated files, because listing it for every file would take quadratic time
        candidates = sorted(entry.path for entry in os.scandir(directory))
    except OSError as error:
        raise UserError(describe_failure(directory, error)) from None
    for path in candidates:
        if _find_inode(path) == file.inode:
            return path
    raise UserError("The file was removed, probably by log rotation.")


def _find_inode(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def read_blocks(file: AuditLogFile, report: Callable[[int], object] = lambda _: None) -> Iterator[Block]:
    """Yield the decompressed lines of a file in blocks.

    If a line is longer than `MAX_FILE_BYTES`, the function yields a block without lines that states the
    problem, in place of the line. If the rest of the file cannot be read, such a block stands for the
    rest.

    `report` is called with the number of bytes of the file, before decompression, that were processed
    since the previous call.
    """
    is_start, parts, size = True, list[bytes](), 0
    try:
        for piece in _decompress(_read_raw(file), report):
            data = piece.removeprefix(b"\xef\xbb\xbf") if is_start else piece
            is_start = False
            end = data.rfind(b"\n") + 1
            if end:
                first = data.index(b"\n") + 1
                if size + first > MAX_FILE_BYTES:
                    yield Block(b"", f"the line is longer than {MAX_FILE_BYTES >> 20} MiB")
                    complete = data[first:end]
                else:
                    complete = b"".join((*parts, memoryview(data)[:end]))
                if complete:
                    yield Block(complete)
                parts, size, data = [], 0, data[end:]
            size += len(data)
            if size <= MAX_FILE_BYTES:
                parts.append(data)
            else:
                parts.clear()
    except UserError as error:
        yield Block(b"", str(error), is_file_problem=True)
    except OSError as error:
        yield Block(b"", describe_failure(file.path, error), is_file_problem=True)
    if size > MAX_FILE_BYTES:
        yield Block(b"", f"the line is longer than {MAX_FILE_BYTES >> 20} MiB")
    elif rest := b"".join(parts):
        yield Block(rest)


def read_text(file: AuditLogFile, max_bytes: int) -> bytes | None:
    """Return the decompressed content of a file, or None if it is larger than `max_bytes`.

    Raises UserError and OSError if the file cannot be read.
    """
    parts, size = [], 0
    for piece in _decompress(_read_raw(file)):
        parts.append(piece)
        size += len(piece)
        if size > max_bytes:
            return None
    return b"".join(parts)


def _decompress(pieces: Iterator[bytes], report: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """Yield decompressed pieces of data. Data that is not compressed is yielded unchanged.

    The compression is recognized by the first bytes, not by the name of the file. `report` is called with the number of
    bytes in `pieces` that were used since the previous call.

    Raises UserError if the compressed data is damaged or incomplete, after yielding the pieces before the damage.
    """
    first = next(pieces, b"")
    while 0 < len(first) < 4 and (more := next(pieces, b"")):
        first += more
    if first.startswith(_GZIP):
        parts = _split_and_report(_chain(first, pieces), report)
        yield from _decompress_stream(parts, lambda: zlib.decompressobj(wbits=31), zlib.error, "gzip")
    elif first.startswith(_ZSTANDARD):
        zstandard = _import_zstandard()
        new = zstandard.ZstdDecompressor().decompressobj
        parts = _split_and_report(_chain(first, pieces), report)
        yield from _decompress_stream(parts, new, zstandard.ZstdError, "Zstandard")
    else:
        for piece in _chain(first, pieces):
            yield piece
            report(len(piece))


def _split_and_report(pieces: Iterator[bytes], report: Callable[[int], object]) -> Iterator[bytes]:
    """Yield compressed data in small parts, and call `report` with the size of each part that was processed.

    A part counts as processed when the caller asks for the next part.
    """
    for piece in pieces:
        for start in range(0, len(piece), _REPORTED_BYTES):
            part = piece[start : start + _REPORTED_BYTES]
            yield part
            report(len(part))


def _import_zstandard() -> Any:
    """Return the module `zstandard`. Raises UserError if the module is not installed."""
    try:
        import zstandard
    except ImportError:
        raise UserError(
            "to read .zst files, install apflint[replay], or decompress the files: zstd -dc FILE | apflint replay -"
        ) from None
    return zstandard


def _chain(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


def _decompress_stream(pieces: Iterator[bytes], new: Any, failure: type[Exception], name: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of compressed data, which may consist of several concatenated streams.

    `new` creates a decompressor with the interface of `zlib.decompressobj`, which raises `failure` for damaged data.
    `name` is the name of the compression in error messages.
    """
    decompressor = new()
    used = total_in = total_out = 0
    for piece in pieces:
        for start in range(0, len(piece), _COMPRESSED_PIECE_BYTES):
            data = piece[start : start + _COMPRESSED_PIECE_BYTES]
            while data:
                if decompressor.eof:
                    decompressor, used = new(), 0
                try:
                    text = decompressor.decompress(data)
                except failure:
                    raise UserError(f"the {name} data is damaged: the rest of the file is not read") from None
                rest = decompressor.unused_data if decompressor.eof else b""
                used += len(data)
                total_in += len(data) - len(rest)
                total_out += len(text)
                if total_out > max(MAX_EXPANDED_BYTES, MAX_EXPANSION * total_in):
                    raise UserError(
                        f"the {name} data expands to more than {MAX_EXPANSION:,} times its size: the rest of the file is not read"
                    )
                data = rest
                for position in range(0, len(text), _TEXT_PIECE_BYTES):
                    yield text[position : position + _TEXT_PIECE_BYTES]
    if used and not decompressor.eof:
        raise UserError(f"the {name} data ends too early: the file is incomplete")


def find_compression(stream: BinaryIO) -> str:
    """Return the compression of an open file as DuckDB names it: `gzip`, `zstd` or `none`.

    Raises OSError if the file, such as an empty pipe, has no bytes yet.
    """
    start: bytes | None = stream.read(4)
    if start is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return "gzip" if start.startswith(_GZIP) else "zstd" if start == _ZSTANDARD else "none"


def is_complete_zstandard(stream: BinaryIO) -> bool:
    """Return whether all frames of an open Zstandard file are complete.

    Only the headers of the blocks are read, and nothing is decompressed. Source: RFC 8878, section 3.
    """
    size = stream.seek(0, os.SEEK_END)
    at = 0
    while at < size:
        stream.seek(at)
        head = stream.read(18)
        if head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:  # a skippable frame (RFC 8878, section 3.1.2)
            at += 8 + int.from_bytes(head[4:8], "little")
            continue
        if not head.startswith(_ZSTANDARD) or len(head) < 6:
            return False
        descriptor = head[4]
        is_single = descriptor & 0x20
        at += 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3] + (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
        is_last = False
        while not is_last:
            stream.seek(at)
            header = int.from_bytes(stream.read(3), "little")
            is_last = bool(header & 1)
            at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
            if at > size:
                return False
        at += 4 if descriptor & 4 else 0
    return at == size
