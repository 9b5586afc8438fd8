"""The engine for large logs: DuckDB reads the files on several cores, in bounded memory, and spills to disk.

DuckDB reads a file with the types of an audit event. If a line has other types, is in an envelope or is not JSON, the
Python engine reads the whole file instead. Thus, all engines produce the same results.
"""

from __future__ import annotations

import glob
import json
import os
import tempfile
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import duckdb

from apflint.interrupts import defer_interrupt
from apflint.replay.database_tables import close_on_error, create_log_tables
from apflint.replay.events import DECISION, QUEUE_WAIT, RECEIVED, TOO_MANY_REQUESTS
from apflint.replay.loaded_log import Log
from apflint.replay.python_engine import EventReader, is_mostly_plain
from apflint.replay.reduction_sql import (
    IS_REQUEST,
    ODD,
    REQUEST_NAMES,
    STAGES,
    is_ambiguous,
    quote,
    read_key,
    reduce_events,
)
from apflint.requests.list_options import LIST_VERBS
from apflint.sources.audit_logs import find_compression, is_complete_zstandard, locate
from apflint.sources.file_reading import open_without_waiting
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from apflint.replay.database_tables import Row
    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Wanted
    from apflint.sources.audit_logs import AuditLogFile

_USER = {"username": "VARCHAR", "groups": "JSON"}
_REFERENCE = dict.fromkeys(("apiGroup", "resource", "subresource", "namespace", "name", "apiVersion"), "VARCHAR")
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("kind", "apiVersion", "stage", "auditID", "verb", "requestURI", "userAgent"), "VARCHAR"),
    "user": _USER,
    "impersonatedUser": _USER,
    "objectRef": _REFERENCE,
    "responseStatus": {"code": "JSON", "reason": "VARCHAR"},
    "annotations": {DECISION: "VARCHAR", QUEUE_WAIT: "VARCHAR"},
    "requestReceivedTimestamp": "VARCHAR",
    "stageTimestamp": "VARCHAR",
}
"""SQL types of the fields of an audit event. A mapping is the type of an object."""
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
_TIME = "2___-__-__T__:__:__.______Z"
"""Pattern of a time as kube-apiserver writes it. DuckDB would also parse times with spaces, or without leading zeros."""
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
"""Maximum number of small files that DuckDB reads.

Planning a query for a file takes as long as reading 4 MB in Python.
"""
_SMALL_FILE_BYTES, _COMPRESSION_FACTOR = 4_000_000, 20
BEGINNING_BYTES = 50_000_000
"""Number of bytes of the first file that are read after an interrupt. Reading them takes about half a second."""
_MIN_FILE_BYTES = 2
_MAX_LINE_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes in a line that DuckDB reads. Python reads files with longer lines."""


class OutOfMemoryError(UserError):
    """A query of DuckDB needs more memory than `--memory` permits."""


class DuckDatabase:
    """A DuckDB database in memory, which spills to a temporary directory. Writing a database file would be slower."""

    has_fast_windows = True

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
        self.query("SET checkpoint_threshold = '1TB'")  # without a database file, checkpoints only take time
        # Spark has this function only under the name `regexp_like`.
        self.query("CREATE MACRO regexp_like(text, pattern) AS regexp_matches(text, pattern)")
        self.query("SET enable_progress_bar = true")  # the name in Spark
        self.query("SET enable_progress_bar_print = false")
        # A log must not make DuckDB load extensions, change settings or use the network. DuckDB reads only the named files.
        self.query("SET autoinstall_known_extensions = false")
        self.query("SET autoload_known_extensions = false")

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

        Raises KeyboardInterrupt if the user interrupts the statement, and UserError if it needs more memory.
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
            if len(text) > _MAX_INSERT_BYTES:  # DuckDB needs 50 times the memory of a JSON value
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
        """Delete the database."""
        self.connection.close()
        self._directory.cleanup()


def _insert_statement(table: str, columns: Sequence[tuple[object, ...]], values: Sequence[str]) -> str:
    """Return a statement that inserts the SQL expressions `values`. `columns` are pairs of name and type."""
    # DuckDB returns a number for the hash of NULL, so events without an audit ID would look like copies of each other.
    # URIs are also compared by hash.
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
    """Read files into DuckDB.

    After an interrupt, the result has the requests of the files that were read completely. DuckDB discards the rows of
    the interrupted query, which reads one or several files. If this is the first query, Python reads the beginning of
    the first file instead.

    Raises UserError if `memory` is not a size.
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
            with _report_progress(database, sum(file.size for file in batch), report):
                _read_batch(database, reader, batch, wanted)
        for file in small:
            reader.read_file(file, report)
        reader.flush()
    except KeyboardInterrupt:
        reader.coverage.interrupted = True
        reader.flush()
        if reader.coverage.files == 0:
            reader.read_file(files[0], max_bytes=BEGINNING_BYTES)
            reader.flush()
    return Log(database, reader.tuples, reader.servers, reader.coverage, "duckdb")


@contextmanager
def _report_progress(database: DuckDatabase, size: int, report: Callable[[int], object]) -> Iterator[None]:
    """Report the bytes that DuckDB has read.

    During the block, the number is DuckDB's estimate. After the block, the rest is reported.
    """
    done = Event()
    reported = 0

    def watch() -> None:
        nonlocal reported
        while not done.wait(_PROGRESS_SECONDS):
            part = int(size * max(0.0, min(database.connection.query_progress(), 100)) / 100)
            if part > reported:
                report(part - reported)
                reported = part

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    report(size - reported)


def _divide(files: Sequence[AuditLogFile]) -> tuple[list[AuditLogFile], list[AuditLogFile]]:
    """Return the files that DuckDB reads, and the files that Python reads: small files, if there are too many for DuckDB."""
    small = [
        file for file in files if file.size * (_COMPRESSION_FACTOR if _is_compressed(file) else 1) < _SMALL_FILE_BYTES
    ]
    if len(small) <= MAX_SMALL_FILES:
        return list(files), []
    others = set(files).difference(small)
    return [file for file in files if file in others], small


def _is_compressed(file: AuditLogFile) -> bool:
    return file.path.endswith((".gz", ".zst"))


def _group_rotated(files: Iterable[AuditLogFile]) -> Iterator[list[AuditLogFile]]:
    """Group files of one server, so that one query reads a group.

    Planning a query takes as long as reading 5 MB in DuckDB.
    """
    batch: list[AuditLogFile] = []
    size = 0
    for file in files:
        # The uncompressed size of a compressed file is unknown, so each compressed file forms its own group.
        added = _MAX_BATCH_BYTES if _is_compressed(file) else file.size
        is_full = size + added >= _MAX_BATCH_BYTES or len(batch) == _MAX_BATCH_FILES
        if batch and (is_full or file.server != batch[0].server):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += added
    if batch:
        yield batch


def _read_batch(database: DuckDatabase, reader: EventReader, batch: Sequence[AuditLogFile], wanted: Wanted) -> None:
    """Read files of one server. Try one DuckDB query for all files, then one DuckDB query for each file, then Python."""
    if _read_files(database, reader, batch, wanted):
        return
    for file in batch:
        if len(batch) == 1 or not _read_files(database, reader, [file], wanted):
            reader.read_file(file)


def _read_files(database: DuckDatabase, reader: EventReader, files: Sequence[AuditLogFile], wanted: Wanted) -> bool:
    """Read files of one server with one DuckDB query.

    Return False, with an unchanged database, if Python must read a file, or if the files have different compressions.
    """
    # A pipe cannot be opened twice. In a file of one byte, DuckDB does not detect a line.
    if any(file.inode is None or file.size < _MIN_FILE_BYTES for file in files):
        return False
    # Check the first lines before the query, because DuckDB would read all files before it fails.
    if not all(map(is_mostly_plain, files)):
        return False
    paths = [_locate(file) for file in files]
    compressions = {None if path is None else _find_compression(path) for path in paths}
    compression = compressions.pop()
    if compressions or compression is None:
        return False
    try:
        links = [_link(database, path) for path in paths if path is not None]
    except OSError:  # the file system has no symbolic links
        return False
    server, typed = reader.server_number(files[0].server), _read_typed(links, compression, wanted)
    event = f"SELECT *, {server} AS server, CAST(hash(audit_id) >> 1 AS BIGINT) AS id FROM ({typed})"
    database.query("BEGIN")
    try:
        database.query(f"CREATE TABLE raw AS {reduce_events(event, 'epoch_us', wanted, reader.namespaces)}")
        counts = dict(_query(database, "SELECT class, count(*) FROM raw GROUP BY class"))
        attributes = None if ODD in counts else _list_new_tuples(database)
    except KeyboardInterrupt:
        database.query("ROLLBACK")
        raise
    except (duckdb.Error, OutOfMemoryError):
        database.query("ROLLBACK")
        return False  # DuckDB cannot read a line, or decompress the file
    if attributes is None or [_locate(file) for file in files] != paths:  # log rotation moved a file
        database.query("ROLLBACK")
        return False
    with defer_interrupt():
        _store_requests(database, list(map(reader.number_attributes, attributes)))
        database.query("COMMIT")
        reader.coverage.files += len(files)
        reader.coverage.stages.update({stage: counts[at] for at, stage in enumerate(STAGES) if at in counts})
    return True


def _locate(file: AuditLogFile) -> str | None:
    """Return the current path of a file, or None if the file was removed."""
    try:
        return locate(file)
    except UserError:
        return None


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
    """Create the table `new_key` with the keys in `raw` that are not in `key`.

    Return the attribute tuples of these keys, or None if only Python can read a key.
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


def _store_requests(database: DuckDatabase, numbers: list[int]) -> None:
    """Move the requests of `raw` to `request`. `numbers` are the indices of the tuples in `new_key`."""
    database.query("INSERT INTO key SELECT key, CAST(? AS INTEGER[])[position] FROM new_key", [numbers])
    database.query(
        f"INSERT INTO request SELECT tuple, server, {REQUEST_NAMES} FROM raw JOIN key ON raw.key = key.key WHERE {IS_REQUEST}"
    )
    answered = f"SELECT id FROM raw WHERE {IS_REQUEST} AND id IS NOT NULL"
    is_unanswered = f"class = {STAGES.index(RECEIVED)} AND id IS NOT NULL AND id NOT IN ({answered})"
    database.query(f"INSERT INTO received SELECT id FROM raw WHERE {is_unanswered}")
    database.query("DROP TABLE raw")
    database.query("DROP TABLE new_key")


def _read_typed(paths: Iterable[str], compression: str, wanted: Wanted) -> str:
    """Return a query for the relation `event`. If a file contains other lines than audit events, the query may fail."""
    columns = ", ".join(f"{quote(name)}: {quote(_type(kind))}" for name, kind in _FIELDS.items())
    name = f"CASE WHEN verb IN ({', '.join(map(quote, LIST_VERBS))}) THEN objectRef.name END"
    texts = [
        "auditID",
        "objectRef.namespace",
        name,
        f'annotations."{QUEUE_WAIT}"',
        *(["userAgent"] if wanted.agent else []),
    ]
    # Fields of `RequestReceived` events that the query does not read are not checked. `read_key` checks the fields of
    # attribute tuples.
    is_plain = f"""
        CASE WHEN {_IS_RECEIVED} THEN NOT {is_ambiguous(texts[:1])}
        ELSE NOT {is_ambiguous(texts)} AND coalesce(starts_with(requestURI, '/'), TRUE)
            AND coalesce(CAST({_CODE} AS TEXT), '') = coalesce(CAST(responseStatus.code AS TEXT), '') END
    """
    # Each file has its own read function, because DuckDB 2.0.0 sometimes silently ignores a line that is not JSON if
    # one function reads several files.
    source = " UNION ALL ".join(
        f"SELECT * FROM read_json({quote(path)}, columns = {{{columns}}}, format = 'newline_delimited', auto_detect = false,"
        f" maximum_object_size = {_MAX_LINE_BYTES}, compression = {quote(compression)})"
        for path in paths
    )
    return f"SELECT CAST(NULL AS TEXT) AS line, {is_plain} AS is_plain, {_EVENT} FROM ({source})"


def _parse_time(text: str) -> str:
    """Return an SQL expression that converts a time field of the event.

    Its value is NULL if kube-apiserver does not write times in this form.
    """
    return f"CASE WHEN NOT {_IS_RECEIVED} AND {text} LIKE {quote(_TIME)} THEN try_strptime({text}, {quote(_TIME_FORMAT)}) END"


_IS_RECEIVED = f"coalesce(stage = '{RECEIVED}', FALSE)"
_CODE = "TRY_CAST(CAST(responseStatus.code AS TEXT) AS INTEGER)"
_EVENT = f"""
    kind, apiVersion AS version, stage, auditID AS audit_id, verb, requestURI AS uri, "user" AS requester,
    impersonatedUser AS impersonated, objectRef AS reference, {_CODE} AS code,
    coalesce(annotations."{DECISION}", CASE WHEN {_CODE} = {TOO_MANY_REQUESTS} THEN responseStatus.reason END) AS decision, annotations."{QUEUE_WAIT}" AS queue_wait,
    {_parse_time("requestReceivedTimestamp")} AS received, {_parse_time("stageTimestamp")} AS ended, userAgent AS agent
"""


def _type(kind: Any) -> str:
    """Return the SQL type of a field."""
    if isinstance(kind, dict):
        fields = ", ".join(f'"{name}" {_type(field)}' for name, field in kind.items())
        return f"STRUCT({fields})"
    return str(kind)


def _query(database: DuckDatabase, sql: str) -> list[Any]:
    return list(database.query(sql))
