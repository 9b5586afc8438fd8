"""The engine for large logs: DuckDB reads the files on all cores, in bounded memory, and spills to disk.

DuckDB reads a line as text and extracts all fields at once. Fields stay JSON text, so that their types can be checked, and are
decoded once for each distinct attribute tuple. Files with anything but plain events in the form of kube-apiserver, such as
events in envelopes, are converted by the Python engine first, so both engines give the same answers.
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

from apflint.errors import UserError
from apflint.inputs.audit_logs import find_compression, is_complete_zstandard, locate, read_blocks
from apflint.replay.events import COMPLETE, DECISION, OTHER_NAMESPACE, PANIC, QUEUE_WAIT, RECEIVED, STARTED
from apflint.replay.list_options import LIST_VERBS, make_sql
from apflint.replay.log import Log, Unreadable
from apflint.replay.python_engine import EventReader, make_attributes, parse_line
from apflint.replay.tables import REQUEST_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from apflint.inputs.audit_logs import AuditLogFile
    from apflint.replay.log import Wanted
    from apflint.replay.tables import Row

_PATHS = {
    "kind": "kind",
    "version": "apiVersion",
    "stage": "stage",
    "audit_id": "auditID",
    "verb": "verb",
    "uri": "requestURI",
    "person": "user",
    "username": "user.username",
    "usergroups": "user.groups",
    "impersonated": "impersonatedUser",
    "asname": "impersonatedUser.username",
    "asgroups": "impersonatedUser.groups",
    "reference": "objectRef",
    "apigroup": "objectRef.apiGroup",
    "resource": "objectRef.resource",
    "subresource": "objectRef.subresource",
    "namespace": "objectRef.namespace",
    "name": "objectRef.name",
    "status": "responseStatus",
    "code": "responseStatus.code",
    "annotations": "annotations",
    "decision": f'annotations."{DECISION}"',
    "wait": f'annotations."{QUEUE_WAIT}"',
    "received": "requestReceivedTimestamp",
    "ended": "stageTimestamp",
    "agent": "userAgent",
}
"""JSON path of each field."""
_TUPLE = ("username", "usergroups", "verb", "apigroup", "resource", "subresource", "namespace", "path", "options")
"""Columns of the attribute tuple, in the order of `read_attributes`."""
_TIME = '"2___-__-__T__:__:__.______Z"'
"""Pattern of a time in the form of kube-apiserver, in quotes. DuckDB also parses hour 24, spaces and years that are wrong."""
_TIMESTAMP = r"^\d{4}-\d\d-\d\dT\S+ \{"
"""Pattern of a line with a timestamp before the event."""
_PROGRESS_SECONDS = 0.5
"""Time between two looks at the progress."""
_WAIT_UNITS = (("h", 3600e6), ("m", 60e6), ("s", 1e6), ("ms", 1e3), ("[uµμ]s", 1.0), ("ns", 1e-3))
"""Units of Go durations in microseconds, in the order in which `parse_wait` adds them."""


class DuckDatabase:
    """A DuckDB database in a temporary directory, which is deleted at exit."""

    has_fast_windows = True

    def __init__(self, memory: str) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="apflint-replay-")
        self.connection = duckdb.connect(os.path.join(self._directory.name, "replay.duckdb"))
        try:
            self.query(f"SET memory_limit = {_quote(memory)}")
        except duckdb.Error:
            self.close()
            raise UserError(f'--memory: "{memory}" is not a size such as 256MB or 4GB') from None
        self.query("SET preserve_insertion_order = false")
        self.query("SET enable_progress_bar = true")  # measures the progress
        self.query("SET enable_progress_bar_print = false")
        # Nothing but the named files is read: no extension, no file of settings, no network.
        self.query("SET autoinstall_known_extensions = false")
        self.query("SET autoload_known_extensions = false")

    @property
    def directory(self) -> str:
        """The temporary directory of the database."""
        return self._directory.name

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows. Raises KeyboardInterrupt if the user interrupts it."""
        try:
            return self.connection.execute(sql).fetchall()
        except RuntimeError as error:
            # DuckDB stops for signals that Python handles, and replaces their exception by this one.
            if type(error) is RuntimeError and "interrupted" in str(error).lower():
                raise KeyboardInterrupt from None
            raise

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run a statement, and yield its rows."""
        result = self.connection.execute(sql)
        while rows := result.fetchmany(10_000):
            yield from rows

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows to a table, through a file, because single INSERT statements are slow."""
        path = os.path.join(self.directory, "rows.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in rows)
        columns = self.query(f"SELECT name, type FROM pragma_table_info({_quote(table)})")
        values = []
        for at, (name, kind) in enumerate(columns):
            value = f"json_extract_string(line, '$[{at}]')"
            values.append(f"(hash({value}) >> 1)::BIGINT" if name == "id" else f"CAST({value} AS {kind})")
        self.query(f"INSERT INTO {table} SELECT {', '.join(values)} FROM {_lines(path)}")
        os.unlink(path)

    def close(self) -> None:
        """Delete the database."""
        self.connection.close()
        self._directory.cleanup()


def read_log(
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object] = lambda _: None,
    *,
    memory: str,
) -> Log:
    """Read files into DuckDB. If the user interrupts, the result has the files that were read completely before.

    Raises UserError if `memory` is not a size.
    """
    database = DuckDatabase(memory)
    try:
        return _read_log(database, files, wanted, namespaces, report)
    except BaseException:
        database.close()
        raise


def _read_log(
    database: DuckDatabase,
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object],
) -> Log:
    database.query(f"CREATE TABLE request ({REQUEST_COLUMNS})")
    columns = ", ".join(f"{name} TEXT" for name in _TUPLE)
    database.query(
        f"CREATE TABLE raw (file INTEGER, class INTEGER, server INTEGER, started INTEGER, {columns}, {_REST})"
    )
    reader = EventReader(wanted, namespaces, lambda rows: database.insert("request", rows), hash_id=_encode)
    try:
        for number, file in enumerate(files):
            with _report_progress(database, file.size, report):
                if not _read_file(database, reader, file, number, wanted):
                    reader.read_file(file)
    except KeyboardInterrupt:
        reader.coverage.interrupted = True
    _number_requests(database, reader)
    return Log(database, reader.tuples, reader.servers, reader.coverage, "duckdb")


_REST = """
    id BIGINT, received BIGINT, ended BIGINT, code INTEGER, decided INTEGER, wait BIGINT, real_namespace TEXT, agent TEXT,
    audit_id TEXT
"""
_REST_NAMES = "id, received, ended, code, decided, wait, real_namespace, agent, audit_id"
_STAGES = (COMPLETE, STARTED, PANIC, RECEIVED)
"""Stages by class. The class of a line is the index of the stage of its event, `_NOT_JSON`, or `_OTHER`."""
_NOT_JSON, _OTHER, _BLANK = 4, 5, 6
"""Classes of lines that are not JSON, of lines that only Python can judge, and of blank lines."""
_IS_REQUEST = "class < 3"


@contextmanager
def _report_progress(database: DuckDatabase, size: int, report: Callable[[int], object]) -> Iterator[None]:
    """Report the bytes of a file while DuckDB reads it, according to DuckDB's estimate, and the rest at the end."""
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


def _read_file(database: DuckDatabase, reader: EventReader, file: AuditLogFile, number: int, wanted: Wanted) -> bool:
    """Read a file with DuckDB. Return False if it needs Python, because it has more than plain events."""
    try:
        path = locate(file)
        with open(path, "rb") as stream:
            compression = find_compression(stream)
            if compression == "zstd" and not is_complete_zstandard(stream):
                return False  # DuckDB would silently omit the end
        if glob.has_magic(path):  # DuckDB would read other files, too
            link = os.path.join(database.directory, f"{number}.log")
            os.symlink(os.path.abspath(path), link)
            path = link
    except (OSError, UserError):
        return False  # Python reports the problem
    database.query("BEGIN")
    try:
        database.query(
            _insertion(path, compression, number, reader.server_number(file.server), wanted, reader.namespaces)
        )
    except KeyboardInterrupt:
        database.query("ROLLBACK")
        raise
    except duckdb.Error as error:
        database.query("ROLLBACK")
        if isinstance(error, duckdb.OutOfMemoryException):
            raise UserError(f"{file.name}: DuckDB needs more memory; increase --memory") from None
        return False  # damaged data, a line that is too long, or not UTF-8
    counts = dict(database.query(f"SELECT class, count(*) FROM raw WHERE file = {number} GROUP BY class"))
    # DuckDB verifies no checksums, so in compressed files a line that is not JSON may be due to damage.
    is_damaged = compression != "none" and _NOT_JSON in counts
    if is_damaged or _OTHER in counts or not counts.keys() - {_NOT_JSON, _BLANK}:
        database.query("ROLLBACK")
        return False
    database.query("COMMIT")
    coverage = reader.coverage
    coverage.files += 1
    coverage.stages.update({stage: counts[number] for number, stage in enumerate(_STAGES) if number in counts})
    if bad := counts.get(_NOT_JSON, 0):
        coverage.unreadable += bad
        if coverage.first_unreadable is None:
            coverage.first_unreadable = find_first_unreadable(file)
    return True


def _insertion(path: str, compression: str, file: int, server: int, wanted: Wanted, namespaces: Collection[str]) -> str:
    """Return the statement that reads a file into the table `raw`. Its inner queries extract, classify and convert fields."""
    paths = ", ".join(_quote(f"$.{path}") for path in _PATHS.values())
    fields = ", ".join(f"field[{at}] AS {name}" for at, name in enumerate(_PATHS, 1))
    objects = " AND ".join(
        f"({name} IS NULL OR {name}[1] = '{{')"
        for name in ("person", "impersonated", "reference", "status", "annotations")
    )
    strings = " AND ".join(
        f"""({name} IS NULL OR {name}[1] = '"')"""
        for name in (
            "username",
            "asname",
            "apigroup",
            "resource",
            "subresource",
            "namespace",
            "name",
            "uri",
            "audit_id",
            "agent",
        )
    )
    groups = " AND ".join(
        f"({name} IS NULL OR regexp_full_match({name}, {_quote(_GROUPS)}))" for name in ("usergroups", "asgroups")
    )
    times = " AND ".join(
        f"{name} LIKE {_quote(_TIME)} AND {name} NOT LIKE '%T24%' AND {name} NOT LIKE '% %' AND {name}_time IS NOT NULL"
        for name in ("received", "ended")
    )
    named = ", ".join(_quote(_encode(name)) for name in sorted(namespaces)) or "NULL"
    is_self = "impersonated IS NULL OR impersonated = '{}'"
    has_path = "reference IS NULL OR reference = '{}'"
    verbs = ", ".join(_quote(_encode(verb)) for verb in LIST_VERBS)
    options = make_sql("coalesce(uri[2:-2], '')", """coalesce(name <> '""', FALSE)""")
    columns = {
        "username": f"CASE WHEN {is_self} THEN username ELSE asname END",
        "usergroups": f"CASE WHEN {is_self} THEN usergroups ELSE asgroups END",
        "verb": "verb",
        "apigroup": "apigroup",
        "resource": "resource",
        "subresource": "subresource",
        "namespace": f"""CASE WHEN namespace IS NULL OR namespace = '""' THEN NULL WHEN namespace IN ({named}) THEN namespace
            ELSE {_quote(_encode(OTHER_NAMESPACE))} END""",
        "path": f"""CASE WHEN {has_path} THEN '"' || split_part(uri[2:-2], '?', 1) || '"' END""",
        "options": f"CASE WHEN NOT ({has_path}) AND verb IN ({verbs}) THEN '\"' || {options} || '\"' END",
        "id": """CASE WHEN audit_id <> '""' THEN (hash(audit_id) >> 1)::BIGINT END""",
        "received": "epoch_us(received_time)",
        "ended": "epoch_us(ended_time)",
        "code": "code::INTEGER",
        "decided": "coalesce(decision <> 'null', FALSE)::INTEGER",
        "wait": f"CASE WHEN regexp_full_match(wait, {_quote(_DURATION)}) THEN floor({_WAIT})::BIGINT END",
        "real_namespace": "json_extract_string(namespace, '$')" if wanted.namespace else "NULL",
        "agent": "json_extract_string(agent, '$')" if wanted.agent else "NULL",
        "audit_id": "json_extract_string(audit_id, '$')" if wanted.audit_id else "NULL",
    }
    assert (*columns,) == (*_TUPLE, *_REST_NAMES.split(", "))
    values = ", ".join(f"CASE WHEN {_IS_REQUEST} THEN {value} END" for value in columns.values())
    stages = " ".join(f"WHEN {_quote(_encode(stage))} THEN {number}" for number, stage in enumerate(_STAGES[:3]))
    return f"""
        INSERT INTO raw
        SELECT {file}, class, {server}, (class = 1)::INTEGER, {values}
        FROM (
            SELECT *, CASE WHEN NOT is_json THEN CASE WHEN trim(line, ' \t\r') = '' THEN {_BLANK}
                    WHEN regexp_matches(line, {_quote(_TIMESTAMP)}) THEN {_OTHER} ELSE {_NOT_JSON} END
                WHEN NOT coalesce((kind IS NULL OR kind = '"Event"')
                    AND (version IS NULL OR starts_with(version, '"audit.k8s.io/')), FALSE) THEN {_OTHER}
                WHEN stage = '"RequestReceived"' THEN 3
                WHEN coalesce(verb[1] = '"' AND {objects} AND {strings} AND {groups} AND {times}
                    AND (NOT ({has_path}) OR uri[1] = '"')
                    AND (code IS NULL OR regexp_full_match(code, '[0-9]{{1,4}}')), FALSE)
                THEN CASE stage {stages} ELSE {_OTHER} END ELSE {_OTHER} END AS class
            FROM (SELECT *, try_cast(received[2:-2] AS TIMESTAMP) AS received_time,
                    try_cast(ended[2:-2] AS TIMESTAMP) AS ended_time FROM (SELECT line, is_json, {fields} FROM (
                SELECT line, is_json, CASE WHEN is_json THEN json_extract(line, [{paths}])::VARCHAR[] END AS field FROM (
                    SELECT line, json_valid(line) AS is_json FROM {_lines(path, compression)} WHERE line IS NOT NULL))))
        )
    """


_GROUPS = r'\[("[^"\\]*"(,"[^"\\]*")*)?\]'
_DURATION = r'"([0-9]{1,7}h)?([0-9]{1,2}m)?[0-9]{1,3}(\.[0-9]{1,9})?(s|ms|[uµμ]s|ns)"'
_WAIT = " + ".join(
    f"coalesce(try_cast(nullif(regexp_extract(wait, '([0-9.]+){unit}{'([^s]|$)' if unit == 'm' else ''}', 1), '') AS DOUBLE), 0)"
    f" * {factor}"
    for unit, factor in _WAIT_UNITS
)
"""SQL expression for the microseconds of a Go duration."""


def _number_requests(database: DuckDatabase, reader: EventReader) -> None:
    """Classify nothing yet, but decode the distinct tuples of `raw`, number them, and fill the table `request`."""
    names = ", ".join(_TUPLE)
    database.query(
        f"CREATE TABLE key AS SELECT (row_number() OVER ()) - 1 AS number, {names}"
        f" FROM (SELECT DISTINCT {names} FROM raw WHERE {_IS_REQUEST})"
    )
    database.query("CREATE TABLE numbered (number INTEGER, tuple INTEGER)")
    rows = []
    for number, *values in database.query(f"SELECT * FROM key ORDER BY {names}"):
        user, groups, *others = (None if value is None else json.loads(value) for value in values)
        key = (user, None if groups is None else tuple(groups), *others)
        rows.append((number, reader.number_attributes(make_attributes(key))))
    database.insert("numbered", rows)
    matches = " AND ".join(f"raw.{name} IS NOT DISTINCT FROM key.{name}" for name in _TUPLE)
    rest = _REST_NAMES.split(", ", 1)[1]
    database.query(
        f"INSERT INTO request SELECT tuple, server, id, started, {rest} FROM raw JOIN key ON {matches}"
        f" JOIN numbered ON key.number = numbered.number WHERE {_IS_REQUEST}"
    )
    database.query("DROP TABLE raw")
    database.query("DROP TABLE key")


def find_first_unreadable(file: AuditLogFile) -> Unreadable | None:
    """Return the first line of a file that is not JSON. DuckDB counts such lines, but does not number them."""
    for block in read_blocks(file):
        for number, line in enumerate(block.data.split(b"\n"), block.line):
            try:
                parse_line(line)
            except UserError as error:
                return Unreadable(file.name, number, str(error))
    return None


def _lines(path: str, compression: str = "none") -> str:
    """Return a table function that yields the lines of a file in the column `line`."""
    return (
        f"read_csv({_quote(path)}, columns = {{'line': 'VARCHAR'}}, header = false, auto_detect = false, delim = {_quote(_NO_DELIMITER)},"
        f" quote = '', escape = '', max_line_size = {_MAX_LINE_BYTES}, buffer_size = {2 * _MAX_LINE_BYTES},"
        f" compression = {_quote(compression)})"
    )


_NO_DELIMITER = "\x01\x02\x03\x04"
"""Characters that JSON does not contain. An empty delimiter would be NUL, and DuckDB would ignore NUL at the end of a line."""
_MAX_LINE_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes in a line that DuckDB reads. Files with longer lines are read by Python."""


def _quote(text: str) -> str:
    """Return a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _encode(text: str) -> str:
    """Return a string as JSON in the form in which DuckDB extracts it."""
    return json.dumps(text, ensure_ascii=False)
