"""The engine for large logs: DuckDB reads the files on several cores, in bounded memory, and spills to disk.

DuckDB reads a file with fixed types for the fields of audit events. If a line does not have these
types or is not JSON, the Python engine reads the whole file instead. So both engines return the
same results. `duckdb_wrappers` reads events in wrappers, which are text or JSON objects that log
collectors put around an event.
"""

from __future__ import annotations

import glob
import json
import os
import tempfile
from contextlib import contextmanager, nullcontext
from functools import cached_property
from io import BytesIO
from itertools import groupby
from math import inf
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import duckdb

from apflint.interrupts import call_on_interrupt, defer_interrupt
from apflint.replay.database_tables import close_on_error, create_log_tables
from apflint.replay.duckdb_events import (
    EVENT_FIELDS,
    MAX_LINE_BYTES,
    MAX_PREFIXED_LINE_BYTES,
    NO_TEXT,
    read_event,
    read_json,
)
from apflint.replay.duckdb_wrappers import NO_LINE, UnwrappedEvents, unwrap_events
from apflint.replay.events import RECEIVED
from apflint.replay.joined_files import MAX_JOINED_BYTES, MAX_JOINED_FILES, group_files, join_files
from apflint.replay.loaded_log import Log
from apflint.replay.python_engine import EventReader, find_format
from apflint.replay.reduction_sql import (
    IS_REQUEST,
    ODD,
    STAGES,
    read_key,
    reduce_events,
    select_request,
)
from apflint.replay.sql_text import quote
from apflint.replay.wrapper_sql import can_unwrap
from apflint.requests.log_wrappers import PLAIN
from apflint.requests.split_lines import is_part
from apflint.sources.audit_logs import find_compression, is_complete_zstandard, locate
from apflint.sources.file_reading import open_without_waiting
from apflint.sources.object_storage import read_object
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from apflint.replay.database_tables import Row
    from apflint.replay.duckdb_objects import ObjectFileSystem
    from apflint.replay.duckdb_prefixes import PrefixFileSystem
    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Wanted
    from apflint.requests.log_wrappers import Wrapper
    from apflint.sources.audit_logs import AuditLogFile

_ROWS_PER_INSERT, _MAX_INSERT_BYTES = 10_000, 4_000_000
_PROGRESS_SECONDS = 0.5
"""Seconds between two reads of DuckDB's progress."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
"""Units of the memory limit that DuckDB reports."""
_BASE_BYTES, _THREAD_BYTES = 64_000_000, 48_000_000
"""Bytes of memory that DuckDB needs for a query, and additional bytes for each thread.

Each thread has a buffer of 32 MiB. Measured: with 256 MB, 5 threads succeed and 6 threads fail.
"""
_MAX_BATCH_BYTES, _MAX_BATCH_FILES = 500_000_000, 50
"""Maximum number of bytes, and maximum number of files, that one query reads.

If the user interrupts a query, the rows of all its files are lost. The memory and the time for planning a query grow
with the number of files: 1,400 files exceed the default memory.
"""
MAX_SMALL_FILES = 50
"""Maximum number of small files that DuckDB reads one by one. More files are joined.

Planning a query for a file takes as long as reading 4 MB in Python.
"""
_SMALL_FILE_BYTES, _COMPRESSION_FACTOR = 4_000_000, 20
BEGINNING_BYTES = 20_000_000
"""Number of bytes of the first file that are read after an interrupt. Reading and classifying them takes about half a second."""
_MIN_FILE_BYTES = 2
_MAX_OTHER_LINES = 50_000
"""Maximum number of lines of a file that are not in its wrapper, such as lines of other logs. Python reads files with more."""


class OutOfMemoryError(UserError):
    """A query of DuckDB needs more memory than `--memory` permits."""


class DuckDatabase:
    """A DuckDB database in memory, which spills to a temporary directory. Writing a database file would be slower."""

    has_fast_windows = True
    is_distributed = False

    def __init__(self, memory: str) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="apflint-replay-")
        self.connection = duckdb.connect()
        try:
            self._set_options(memory)
        except BaseException:
            self.close()
            raise

    def _set_options(self, memory: str) -> None:
        try:
            self.query(f"SET memory_limit = {quote(memory)}")
        except duckdb.Error:
            raise UserError(f'--memory: "{memory}" is not a size such as 256MB or 4GB') from None
        self._limit_threads()
        self.query(f"SET temp_directory = {quote(self._directory.name)}")
        self.query("SET preserve_insertion_order = false")
        self.query("SET checkpoint_threshold = '1TB'")  # avoid checkpoints, which are useless for a database in memory
        # Spark executes the same SQL, and has this function only under the name `regexp_like`.
        self.query("CREATE MACRO regexp_like(text, pattern) AS regexp_matches(text, pattern)")
        self.query("SET enable_progress_bar = true")
        self.query("SET enable_progress_bar_print = false")
        # A log must not make DuckDB load an extension, which could, for example, use the network.
        self.query("SET autoinstall_known_extensions = false")
        self.query("SET autoload_known_extensions = false")

    @cached_property
    def objects(self) -> ObjectFileSystem:
        """The file system through which DuckDB reads objects in object storage."""
        from apflint.replay.duckdb_objects import ObjectFileSystem

        files = ObjectFileSystem()
        self.connection.register_filesystem(files)
        return files

    @cached_property
    def prefixed_files(self) -> PrefixFileSystem:
        """The file system through which DuckDB reads lines with a prefix."""
        from apflint.replay.duckdb_prefixes import PrefixFileSystem

        files = PrefixFileSystem()
        self.connection.register_filesystem(files)
        return files

    def _limit_threads(self) -> None:
        """Limit the number of threads, so that their buffers fit into the memory.

        By default, DuckDB uses all cores, and fails with 6 cores and 256 MB.
        """
        ((limit, cores),) = self.query("SELECT current_setting('memory_limit'), current_setting('threads')")
        number, unit = str(limit).split()
        size = float(number) * 1024 ** _UNITS.index(unit)
        self.query(f"SET threads = {min(int(str(cores)), max(1, int(size - _BASE_BYTES) // _THREAD_BYTES))}")

    @property
    def directory(self) -> str:
        """The temporary directory of the database."""
        return self._directory.name

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Run a statement, and return its rows.

        Raises KeyboardInterrupt if the user interrupts the statement, and OutOfMemoryError if the statement needs more
        memory than `--memory` permits.
        """
        with _translate_errors():
            return self.connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[object, ...]]:
        """Run a statement, and yield its rows. Raises exceptions as `query` does."""
        with _translate_errors():
            result = self.connection.execute(sql)
            while rows := result.fetchmany(10_000):
                yield from rows

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows to a table. The rows are passed as JSON, because single INSERT statements are slow."""
        columns = self.query(f"SELECT name, type FROM pragma_table_info({quote(table)})")
        statement = _insert_statement(table, columns, [f"row ->> {at}" for at in range(len(columns))])
        some: list[str] = []
        size = 0
        for row in rows:
            text = json.dumps(row)
            if len(text) > _MAX_INSERT_BYTES:  # as JSON, this row would need 50 times its size in memory
                names = [f"value{at}" for at in range(len(row))]
                source = ", ".join(f"CAST(? AS TEXT) AS {name}" for name in names)
                self.query(f"{_insert_statement(table, columns[: len(row)], names)} FROM (SELECT {source})", row)
                continue
            if some and (len(some) == _ROWS_PER_INSERT or size + len(text) > _MAX_INSERT_BYTES):
                self._insert_json(statement, some)
                some, size = [], 0
            some.append(text)
            size += len(text)
        if some:
            self._insert_json(statement, some)

    def _insert_json(self, statement: str, rows: list[str]) -> None:
        self.query(f"{statement} FROM (SELECT unnest(CAST(? AS JSON[])) AS row)", [f"[{','.join(rows)}]"])

    def close(self) -> None:
        """Close the connection, and delete the temporary directory."""
        self.connection.close()
        self._directory.cleanup()


def _insert_statement(table: str, columns: Sequence[tuple[object, ...]], values: Sequence[str]) -> str:
    """Return a statement that inserts the SQL expressions `values`. `columns` are pairs of name and type."""
    # The columns `id` and `uri` contain hashes of audit IDs and URIs. DuckDB returns a number for the hash of NULL, so
    # events without an audit ID would look like copies of each other.
    converted = [
        f"CASE WHEN {value} IS NOT NULL THEN (hash({value}) >> 1)::BIGINT END"
        if name in ("id", "uri")
        else f"CAST({value} AS {kind})"
        for (name, kind), value in zip(columns, values, strict=True)
    ]
    names = ", ".join(f'"{name}"' for name, _ in columns)
    return f"INSERT INTO {table} ({names}) SELECT {', '.join(converted)}"


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException:
        raise OutOfMemoryError("DuckDB needs more memory: increase --memory") from None
    except RuntimeError as error:
        # If Python handles a signal during a query, DuckDB raises this exception instead of the exception of the signal
        # handler.
        if type(error) is RuntimeError and "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise


def read_log(
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object] = lambda _: None,
    *,
    memory: str,
) -> Log:
    """Read audit logs into DuckDB, and return the log with its requests.

    After an interrupt (Ctrl-C), the result has only the requests of the files that were read
    completely. A query reads one or several files, and DuckDB discards the rows of an interrupted
    query. If no file was read completely, Python reads the beginning of the first file, so that the
    result is not empty.

    Raises UserError if `memory` is not a size. Raises KeyboardInterrupt after an interrupt if
    `wanted.whole_log` is true.
    """
    database = DuckDatabase(memory)
    with close_on_error(database):
        return _read_log(database, files, wanted, namespaces, report)


def _read_log(
    database: DuckDatabase,
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object],
) -> Log:
    create_log_tables(database)
    database.query("CREATE TABLE key (key TEXT, tuple INTEGER)")
    reader = EventReader(wanted, namespaces, database.insert, hash_id=str)
    try:
        large, small = _divide(files)
        for batch in _group_rotated(large):
            with _report_progress(database, sum(file.size for file in batch), report) as count:
                _read_batch(database, reader, batch, wanted, count)
        is_plain = True
        for group in group_files(small, _estimate_size, MAX_JOINED_BYTES, MAX_JOINED_FILES):
            with _report_progress(database, sum(file.size for file in group), report) as count:
                if is_plain:
                    is_plain = _read_small(database, reader, group, wanted, count)
                else:
                    for file in group:
                        reader.read_file(file, count)
        reader.flush()
    except KeyboardInterrupt:
        if wanted.whole_log:
            raise
        reader.coverage.interrupted = True
        reader.flush()
        if reader.coverage.files == 0:
            reader.read_file(files[0], max_bytes=BEGINNING_BYTES)
            reader.flush()
    return Log(database, reader.tuples, reader.servers, reader.coverage, "duckdb")


@contextmanager
def _report_progress(
    database: DuckDatabase, size: int, report: Callable[[int], object]
) -> Iterator[Callable[[int], object]]:
    """Report the progress of reading files, in bytes, while the `with` block is executed.

    `size` is the total size of the files in bytes. Yield a function for code that reads a file with
    Python instead of DuckDB. The code calls the function with the number of bytes that it has read. If
    the function is not called, the progress is the estimate of DuckDB. At the end of the block, the
    bytes that are not yet reported are reported, so that the reported total is `size`.
    """
    done = Event()
    reported = in_python = 0

    def count(read: int) -> None:
        nonlocal in_python
        in_python += read

    def watch() -> None:
        nonlocal reported
        while not done.wait(_PROGRESS_SECONDS):
            percentage = max(0.0, min(database.connection.query_progress(), 100))
            part = min(size, in_python or int(size * percentage / 100))
            if part > reported:
                report(part - reported)
                reported = part

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield count
    finally:
        done.set()
        thread.join()
    report(size - reported)


def _divide(files: Sequence[AuditLogFile]) -> tuple[list[AuditLogFile], list[AuditLogFile]]:
    """Return two lists: the files that DuckDB reads directly, and the files that must be joined first.

    The second list contains the small files if there are more than `MAX_SMALL_FILES`. Otherwise, it is empty.
    """
    small = [file for file in files if _estimate_size(file) < _SMALL_FILE_BYTES]
    if len(small) <= MAX_SMALL_FILES:
        return list(files), []
    others = set(files).difference(small)
    return [file for file in files if file in others], small


def _is_compressed(file: AuditLogFile) -> bool:
    return file.path.endswith((".gz", ".zst"))


def _group_rotated(files: Iterable[AuditLogFile]) -> Iterator[list[AuditLogFile]]:
    """Yield groups of files. One query reads all files of a group, and they belong to the same server.

    Planning a query takes as long as reading 5 MB in DuckDB, so one query for several files is faster.
    The uncompressed size of a compressed file is unknown, so each compressed file forms its own group.
    """
    for _, some in groupby(files, lambda file: file.server):
        yield from group_files(
            some, lambda file: inf if _is_compressed(file) else file.size, _MAX_BATCH_BYTES, _MAX_BATCH_FILES
        )


def _estimate_size(file: AuditLogFile) -> int:
    """Return the size of a file in bytes, or if it is compressed, a guess that most logs do not exceed."""
    return file.size * (_COMPRESSION_FACTOR if _is_compressed(file) else 1)


def _read_batch(
    database: DuckDatabase,
    reader: EventReader,
    batch: Sequence[AuditLogFile],
    wanted: Wanted,
    count: Callable[[int], object],
) -> None:
    """Read files of one server. Try one DuckDB query for all files, then one DuckDB query for each file, then Python.

    `count` is called with the number of bytes that Python has read since the previous call.
    """
    if _read_files(database, reader, batch, wanted):
        return
    for file in batch:
        if len(batch) == 1 or not _read_files(database, reader, [file], wanted):
            reader.read_file(file, count)


def _read_files(database: DuckDatabase, reader: EventReader, files: Sequence[AuditLogFile], wanted: Wanted) -> bool:
    """Read files of one server with one DuckDB query.

    Return False, with an unchanged database, if Python must read a file, or if the files have different compressions.
    """
    # Python reads pipes, which cannot be opened twice, and files of one byte, in which DuckDB does not detect a line.
    if any(file.is_stream or file.size < _MIN_FILE_BYTES for file in files):
        return False
    # Check the first lines of each file now, because DuckDB would report another format only after it
    # has read all files. If the lines contain events in wrappers, such as the records of a log
    # collector, read the files one by one: Python reads some of the lines, and must know the file of
    # each of them.
    formats = {find_format(file, wanted.event_field) for file in files}
    wrapper = formats.pop()
    if formats or wrapper is None or (wrapper != PLAIN and (len(files) > 1 or not can_unwrap(wrapper))):
        return False
    paths = [_locate(file) for file in files]
    compressions = {
        _find_object_compression(file) if file.is_object else None if path is None else _find_compression(path)
        for file, path in zip(files, paths, strict=True)
    }
    compression = compressions.pop()
    if compressions or compression is None:
        return False
    try:
        links = [
            database.objects.add(file) if file.is_object else _link(database, path)
            for file, path in zip(files, paths, strict=True)
            if path is not None
        ]
    except OSError:  # the file system has no symbolic links
        return False

    def load(events: AbstractContextManager[UnwrappedEvents]) -> bool:
        return _load(database, reader, files, events, wanted, lambda: [_locate(file) for file in files] == paths)

    if wrapper == PLAIN:
        return load(_select_plain(links, compression, wanted))
    if (
        (wrapper.prefix and compression == "none" and paths[0] is not None and not files[0].is_object)
        and (url := _add_prefixed(database, paths[0], wrapper))
        and load(_select_plain([url], compression, wanted, MAX_PREFIXED_LINE_BYTES))
    ):
        return True
    return load(unwrap_events(database, links[0], compression, wrapper, wanted))


def _select_plain(
    links: Sequence[str], compression: str, wanted: Wanted, max_line_bytes: int = MAX_LINE_BYTES
) -> AbstractContextManager[UnwrappedEvents]:
    source = read_json(links, EVENT_FIELDS, compression, max_line_bytes)
    event = f"SELECT {NO_TEXT} AS line, {NO_TEXT} AS server, {read_event(wanted)} FROM ({source})"
    return nullcontext(UnwrappedEvents(event))


def _add_prefixed(database: DuckDatabase, path: str, wrapper: Wrapper) -> str | None:
    """Register a file whose lines have a prefix, so that DuckDB can read the file without the prefixes.

    Return the path under which DuckDB reads the file, or None if DuckDB needs a temporary file instead.
    """
    try:
        return database.prefixed_files.add(path, wrapper)
    except (ImportError, OSError):  # fsspec is not installed, or the file was removed
        return None


def _read_small(
    database: DuckDatabase,
    reader: EventReader,
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    count: Callable[[int], object],
) -> bool:
    """Read small files with one query, if each line is an audit event without a wrapper.

    Python reads the other files, and all files if the query fails.

    `count` is called with the number of bytes that Python has read since the previous call. Return whether the query
    succeeded.
    """
    with join_files(database.directory, files) as joined:
        events = nullcontext(UnwrappedEvents(joined.select_events(wanted), has_all_servers=bool(joined.server_key)))
        is_loaded = bool(joined.files) and _load(database, reader, joined.files, events, wanted)
    others = set(files).difference(joined.files) if is_loaded else files
    for file in files:
        if file in others:
            reader.read_file(file, count)
    return is_loaded


def _load(
    database: DuckDatabase,
    reader: EventReader,
    files: Sequence[AuditLogFile],
    source: AbstractContextManager[UnwrappedEvents],
    wanted: Wanted,
    is_valid: Callable[[], bool] = lambda: True,
) -> bool:
    """Store the requests of the events in files. Events that name no server belong to the server of the first file.

    Return False, with an unchanged database, if Python must read a file, or if `is_valid` returns False after the query.
    """
    server = usual = files[0].server
    for file in files:
        reader.server_number(file.server)
    database.query("BEGIN")
    try:
        # DuckDB checks for signals only after a task, which reads up to 100 MB. So a signal handler interrupts the
        # query.
        with call_on_interrupt(database.connection.interrupt), source as events:
            usual = events.server or server
            _reduce(database, reader, events.event, wanted)
            if events.number is not None:
                events.check_number(_count(database, "raw"))
        counts = dict(_query(database, "SELECT class, count(*) FROM raw GROUP BY class"))
        others = _list_other_lines(database, counts.pop(ODD, 0))
        attributes = None if others is None else _list_new_tuples(database)
        if events.has_all_servers and _count(database, "raw WHERE server IS NULL"):
            attributes = None
    except KeyboardInterrupt:
        database.query("ROLLBACK")
        raise
    except (duckdb.Error, OutOfMemoryError):
        database.query("ROLLBACK")
        return False  # DuckDB cannot read a line, or decompress the file
    if attributes is None or not is_valid():  # log rotation moved a file
        database.query("ROLLBACK")
        return False
    with defer_interrupt():
        _number_servers(database, reader, server)
        numbers = list(map(reader.number_attributes, attributes))
        _store_requests(database, numbers, reader.server_number(usual), wanted)
        database.query("COMMIT")
        reader.coverage.stages.update({stage: counts[at] for at, stage in enumerate(STAGES) if at in counts})
        if others:
            reader.read_odd_lines(files[0], others)
        else:
            reader.coverage.files += len(files)
    return True


def _reduce(database: DuckDatabase, reader: EventReader, event: str, wanted: Wanted) -> None:
    """Create the table `raw` with a row for each audit event that the SQL query `event` returns.

    `reduce_events` defines the columns of the table.
    """
    event = f"SELECT *, CAST(hash(audit_id) >> 1 AS BIGINT) AS id FROM ({event})"
    database.query(f"CREATE TABLE raw AS {reduce_events(event, 'epoch_us', wanted, reader.namespaces)}")


def _list_other_lines(database: DuckDatabase, number: int) -> list[str] | None:
    """Return the lines that SQL cannot read, so that Python reads them. The lines are in the table `raw`.

    `number` is the number of rows of `raw` with the class `ODD`, which marks these lines. If `number`
    is 0, return an empty list. Return None if Python must read the whole file, because there are too
    many such lines, or because a line is unavailable or is a part of a longer line.
    """
    if not number:
        return []
    if number > _MAX_OTHER_LINES:
        return None
    lines = [line for (line,) in _query(database, f"SELECT line FROM raw WHERE class = {ODD}")]
    # Python must read the whole file if it contains parts of a long line, because their order is needed to join them.
    return None if any(line is None or line == NO_LINE or is_part(line) for line in lines) else lines


def _number_servers(database: DuckDatabase, reader: EventReader, server: str) -> None:
    """Create the table `named`, which maps each server name in the table `raw` to the number of the server.

    An empty name stands for `server`.
    """
    names = [
        name for (name,) in _query(database, "SELECT DISTINCT server FROM raw WHERE server IS NOT NULL ORDER BY 1")
    ]
    database.query("CREATE TABLE named (name VARCHAR, number INTEGER)")
    database.insert("named", [(name, reader.server_number(name or server)) for name in names])


def _locate(file: AuditLogFile) -> str | None:
    """Return the path that a file has now, because log rotation may have renamed the file.

    Return None if the file was removed.
    """
    try:
        return locate(file)
    except UserError:
        return None


def _find_object_compression(file: AuditLogFile) -> str | None:
    """Return the compression of an object, or None if Python must read it."""
    try:
        start = next(read_object(file.path, file.size), b"")
    except UserError:
        return None
    compression = find_compression(BytesIO(start))
    # DuckDB would silently omit the incomplete end of Zstandard data. Only reading the whole object shows whether its
    # data is complete. So Python reads Zstandard objects.
    return None if compression == "zstd" else compression


def _find_compression(path: str) -> str | None:
    """Return the compression of a file, or None if Python must read the file, because its compressed data is incomplete."""
    try:
        with open(path, "rb", opener=open_without_waiting) as stream:
            compression = find_compression(stream)
            # DuckDB would silently omit the incomplete end of a Zstandard file.
            return None if compression == "zstd" and not is_complete_zstandard(stream) else compression
    except OSError:
        return None


def _link(database: DuckDatabase, path: str) -> str:
    """Return a path for DuckDB: the file itself, or a link if the path contains a glob pattern or is not UTF-8."""
    if not glob.has_magic(path) and _is_utf8(path):
        return path
    link = os.path.join(tempfile.mkdtemp(dir=database.directory), "audit.log")
    os.symlink(os.path.abspath(path), link)
    return link


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # lone surrogates stand for bytes that are not UTF-8
        return False
    return True


def _list_new_tuples(database: DuckDatabase) -> list[AttributeTuple] | None:
    """Return the attribute tuples of the keys that are in the table `raw`, but not in the table `key`.

    The function also creates the table `new_key` with these keys. Each key contains the attributes of
    events as text. Return None if a key may contain a JSON value of a wrong type, so that Python must
    read the events.
    """
    keys = f"SELECT DISTINCT key FROM raw WHERE {IS_REQUEST}"
    database.query(
        "CREATE TABLE new_key AS SELECT row_number() OVER (ORDER BY key) AS position, key"
        f" FROM ({keys}) WHERE key NOT IN (SELECT key FROM key)"
    )
    try:
        return [read_key(key) for (key,) in _query(database, "SELECT key FROM new_key ORDER BY position")]
    except ValueError:
        return None


def _store_requests(database: DuckDatabase, numbers: list[int], server: int, wanted: Wanted) -> None:
    """Move the requests from the table `raw` to the table `request`, and drop the table `raw`.

    `numbers` contains the index of the attribute tuple for each key in the table `new_key`. Events that
    name no server get the server index `server`.
    """
    database.query("INSERT INTO key SELECT key, CAST(? AS INTEGER[])[position] FROM new_key", [numbers])
    database.query(
        f"INSERT INTO request SELECT tuple, coalesce(number, {server}), {select_request(wanted)} FROM raw JOIN key ON raw.key = key.key"
        f" LEFT JOIN named ON raw.server = named.name WHERE {IS_REQUEST}"
    )
    answered = f"SELECT id FROM raw WHERE {IS_REQUEST} AND id IS NOT NULL"
    is_unanswered = f"class = {STAGES.index(RECEIVED)} AND id IS NOT NULL AND id NOT IN ({answered})"
    database.query(f"INSERT INTO received SELECT id FROM raw WHERE {is_unanswered}")
    for table in ("raw", "new_key", "named"):
        database.query(f"DROP TABLE {table}")


def _count(database: DuckDatabase, table: str) -> int:
    ((number,),) = _query(database, f"SELECT count(*) FROM {table}")
    return int(number)


def _query(database: DuckDatabase, sql: str) -> list[Any]:
    return list(database.query(sql))
