"""Joins small log files into one temporary file, so that one query of DuckDB reads many files.

DuckDB needs more time to plan a query for a file than to read a small file. Only files that begin
as an event of kube-apiserver does are joined. If the files come from several servers, each event
gets an additional field with the name of its server.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.duckdb_events import EVENT_FIELDS, NO_TEXT, quote_name, read_event, read_json
from apflint.sources.audit_logs import read_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.replay.loaded_log import Wanted
    from apflint.sources.audit_logs import AuditLogFile

_EVENT_START = b'{"kind"'
"""The beginning of every event that kube-apiserver writes."""
MAX_JOINED_BYTES, MAX_JOINED_FILES = 128_000_000, 2_000
"""Maximum number of bytes, and maximum number of files, that are joined. If the user interrupts the query, their rows are lost."""
_MAX_FILE_BYTES = 32_000_000
"""Maximum number of bytes of the content of a file, which is in memory while it is joined."""


class JoinedFiles(NamedTuple):
    """A temporary file with the lines of several files."""

    path: str
    files: list[AuditLogFile]
    """The files that were joined. The engine in Python must read the others."""
    server_key: str
    """Key with the name of the server in each event. Empty if all files are of one server."""

    def select_events(self, wanted: Wanted) -> str:
        """Return an SQL query that reads the events from the temporary file, with the columns of the relation `event`.

        The query has all columns except the hash of the audit ID.
        """
        fields = {**EVENT_FIELDS, self.server_key: "VARCHAR"} if self.server_key else EVENT_FIELDS
        server = quote_name(self.server_key) if self.server_key else NO_TEXT
        source = read_json([self.path], fields, "none")
        return f"SELECT {NO_TEXT} AS line, {server} AS server, {read_event(wanted)} FROM ({source})"


def group_files(
    files: Iterable[AuditLogFile], measure: Callable[[AuditLogFile], float], max_bytes: int, max_files: int
) -> Iterator[list[AuditLogFile]]:
    """Group consecutive files, so that one query reads a group. `measure` returns the size of a file in bytes.

    A file of more than `max_bytes` forms its own group.
    """
    group: list[AuditLogFile] = []
    size = 0.0
    for file in files:
        added = measure(file)
        if group and (len(group) == max_files or size + added > max_bytes):
            yield group
            group, size = [], 0.0
        group.append(file)
        size += added
    if group:
        yield group


@contextmanager
def join_files(directory: str, files: Sequence[AuditLogFile]) -> Iterator[JoinedFiles]:
    """Write the lines of files to a temporary file, which exists during the block.

    Files that are damaged, or do not begin with an event, are left out.
    """
    key = f"server-{secrets.token_hex(8)}" if len({file.server for file in files}) > 1 else ""
    path = os.path.join(directory, f"{secrets.token_hex(8)}.json")
    joined = []
    try:
        try:
            with open(path, "wb") as output:
                for file in files:
                    data = _read_events(file) if file.server else None
                    if data is not None:
                        output.write(_add_key(data, key, file.server))
                        joined.append(file)
        except OSError:  # for example, the disk is full: join no files
            joined = []
        yield JoinedFiles(path, joined, key)
    finally:
        if os.path.exists(path):
            os.unlink(path)


def _read_events(file: AuditLogFile) -> bytes | None:
    """Return the lines of a file, or None if it is damaged, does not begin with an event, or is too large."""
    parts: list[bytes] = []
    size = 0
    for block in read_blocks(file):
        size += len(block.data)
        if block.problem or size > _MAX_FILE_BYTES or not (parts or block.data.startswith(_EVENT_START)):
            return None
        parts.append(block.data)
    return b"".join(parts)


def _add_key(data: bytes, key: str, server: str) -> bytes:
    """Return lines with the name of the server as the first field of each object."""
    if data and not data.endswith(b"\n"):
        data += b"\n"
    if not key or not data:
        return data
    start = f'{{"{key}":{json.dumps(server)},"'.encode("utf-8", "replace")
    # Lines that do not begin with `{"` get no key, so that the engine can detect them by the missing
    # key. The code splits the text into lines because this is twice as fast as a replacement.
    return b"\n".join([start + line[2:] if line.startswith(b'{"') else line for line in data.split(b"\n")])
