"""The engine for logs in object storage: Spark reduces the events to requests, and SQLite stores a row for each request.

Executors execute only SQL, so they do not need apflint. Python reads the lines that are not audit events, or that
contain an event in an unusual form.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from urllib.request import proxy_bypass

from apflint.replay.database_tables import close_on_error, create_log_tables
from apflint.replay.events import DECISION, QUEUE_WAIT, RECEIVED, TOO_MANY_REQUESTS
from apflint.replay.loaded_log import Log, Wanted
from apflint.replay.python_engine import EventReader, SqliteDatabase, find_format
from apflint.replay.reduction_sql import IS_REQUEST, ODD, STAGES, is_ambiguous, read_key, reduce_events
from apflint.requests.log_wrappers import PLAIN
from apflint.sources.audit_logs import AuditLogFile, find_compression, is_url
from apflint.sources.file_reading import open_without_waiting
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

_USER = "STRUCT<username: STRING, groups: ARRAY<STRING>>"
_SCHEMA = f"""
    kind STRING, apiVersion STRING, stage STRING, auditID STRING, verb STRING, requestURI STRING, userAgent STRING,
    user {_USER}, impersonatedUser {_USER}, objectRef STRUCT<apiGroup: STRING, resource: STRING, subresource: STRING,
    namespace: STRING, name: STRING, apiVersion: STRING>, responseStatus STRUCT<code: BIGINT, reason: STRING>,
    annotations STRUCT<`{DECISION}`: STRING, `{QUEUE_WAIT}`: STRING>, requestReceivedTimestamp STRING, stageTimestamp STRING,
    corrupt STRING
"""
_TEXTS = (
    *("verb", "auditID", "user.username", "impersonatedUser.username", "userAgent", f"annotations.`{QUEUE_WAIT}`"),
    *("objectRef.apiGroup", "objectRef.resource", "objectRef.subresource", "objectRef.namespace", "objectRef.name"),
)
_MAX_ODD_BYTES = 64 * 1024 * 1024
_ROWS_PER_INSERT = 10_000
_SERVER = re.compile(r"sc://(?:\[([0-9A-Fa-f:.]+)\]|([^\s/:;?#@\[\]]+))(?::([0-9]{1,5}))?(?:/(?:;.*)?)?")
"""URL of a Spark Connect server: an IPv6 address or a host, a port, and parameters such as a token."""
_DEFAULT_PORT = 15002
_CONNECT_SECONDS = 10.0
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables with proxies that gRPC uses."""


def read_log(
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object] = lambda _: None,
    *,
    remote: str | None = None,
) -> Log:
    """Read files and URLs with Spark: a Spark Connect server at `remote`, or a local Spark.

    Raises UserError if Spark is not installed or not reachable, and if it cannot read a URL.
    """
    if remote and (local := next((file.name for file in files if not is_url(file.path)), None)):
        raise UserError(f"{local}: the Spark server cannot read your files; use a URL such as s3a://BUCKET/PATH")
    distributed = [file for file in files if is_url(file.path) or _is_readable(file)]
    database = SqliteDatabase()
    with close_on_error(database), _open_session(remote) as spark:
        create_log_tables(database)
        reader = EventReader(wanted, namespaces, database.insert)
        try:
            if distributed:
                _read_files(spark, database, reader, distributed, wanted)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001  # Spark Connect, Py4J and SQL have different errors
            if any(is_url(file.path) for file in distributed):
                raise UserError(f"Spark cannot read the log: {_describe(error)}") from None
            distributed = []  # read by Spark; Python reads the others
        for file in files:
            if file not in distributed:
                reader.read_file(file)
                reader.flush()
            report(file.size)
    return Log(database, reader.tuples, reader.servers, reader.coverage, "spark")


@contextmanager
def _open_session(remote: str | None) -> Iterator[Any]:
    """Open a Spark session. Hide the terminal output of Spark and of its Java process."""
    if remote:
        check_server(remote)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UserError("Spark is not installed. Install it with: pip install 'apflint[spark]'") from None
    if not remote and not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        raise UserError("Spark needs Java 17 or later. Install it, or use a Spark server: --spark-remote sc://HOST")
    builder = SparkSession.builder.appName("apflint")
    if not remote:
        settings: dict[str, bool | float | int | str | None] = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "2",
        }
        builder = builder.master(os.environ.get("SPARK_MASTER", "local[*]")).config(map=settings)
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)  # the Java process inherits this standard error, and keeps it
    try:
        spark = (builder.remote(remote) if remote else builder).getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    except Exception as error:  # noqa: BLE001  # as above
        place = f"the Spark server {_hide_parameters(remote)}" if remote else "a local Spark"
        raise UserError(f"cannot use {place}: {_describe(error)}") from None
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
    try:
        yield spark
    finally:
        spark.stop()


def check_server(remote: str, seconds: float = _CONNECT_SECONDS) -> None:
    """Raise UserError if the URL is invalid, or if no server accepts connections.

    The check is fast. PySpark would try to connect for more than 10 minutes.
    """
    name = _hide_parameters(remote)
    match = _SERVER.fullmatch(remote)
    port = int(match[3] or _DEFAULT_PORT) if match else 0
    if not match or not 0 < port < 2**16:
        raise UserError(f"{name} is not a valid URL of a Spark server; use sc://HOST or sc://HOST:PORT")
    host = match[1] or match[2]
    if any(map(os.environ.get, _PROXIES)) and not proxy_bypass(host):
        return
    try:
        socket.create_connection((host, port), seconds).close()
    except (OSError, UnicodeError) as error:  # a label of the host name is empty or too long
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot use the Spark server {name}: {reason}") from None


def _hide_parameters(remote: str) -> str:
    """Return the URL of a server without its parameters, which may contain a token."""
    return remote.partition(";")[0].removesuffix("/")


def _describe(error: Exception) -> str:
    """Return the first line of the message of a Spark error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _is_readable(file: AuditLogFile) -> bool:
    """Return whether Spark can read a local file.

    Spark detects compression by file name, and needs native libraries for Zstandard.
    """
    if file.inode is None:
        return False
    try:
        with open(file.path, "rb", opener=open_without_waiting) as stream:
            compression = find_compression(stream)
    except OSError:
        return False
    return compression == ("gzip" if file.path.endswith(".gz") else "none") and find_format(file) == PLAIN


def _read_files(
    spark: Any, database: SqliteDatabase, reader: EventReader, files: Sequence[AuditLogFile], wanted: Wanted
) -> None:
    paths = {_normalize(_url(file)): file for file in files}
    lines = spark.read.text([_url(file) for file in files], lineSep="\n").selectExpr(
        "value", "_metadata.file_path AS file"
    )
    lines.createOrReplaceTempView("apflint_line")
    named = [name for name in reader.namespaces if "\\" not in name and "'" not in name]
    reduced = reduce_events(_EVENT, "unix_micros", wanted._replace(audit_id=True), named)
    raw = spark.sql(reduced).persist()
    raw.createOrReplaceTempView("apflint_raw")
    try:
        _store_rows(spark, database, reader, wanted, paths)
    finally:
        raw.unpersist()


def _store_rows(
    spark: Any, database: SqliteDatabase, reader: EventReader, wanted: Wanted, paths: dict[str, AuditLogFile]
) -> None:
    files: dict[str, AuditLogFile] = {}
    for path, kind, count, size in _collect(
        spark, "SELECT server, class, count(*), sum(length(line)) FROM apflint_raw GROUP BY server, class"
    ):
        file = files[path] = paths.get(_normalize(path)) or AuditLogFile(path, path)
        if kind < len(STAGES):
            reader.coverage.stages[STAGES[kind]] += count
        elif size > _MAX_ODD_BYTES:
            raise UserError(
                f"{file.name}: {count} lines are not audit events, or contain an event in an unusual form, such as in an"
                f" envelope; Spark reads at most {_MAX_ODD_BYTES // 1024**2} MiB of such lines"
            )
    keys = spark.sql(
        "SELECT CAST(row_number() OVER (ORDER BY key) AS INTEGER) AS number, key"
        f" FROM (SELECT DISTINCT key FROM apflint_raw WHERE {IS_REQUEST})"
    ).persist()
    keys.createOrReplaceTempView("apflint_key")
    numbers = {number: reader.number_attributes(read_key(key)) for number, key in map(tuple, keys.collect())}
    rows = spark.sql(
        "SELECT number, server, audit_id, started, received, ended, code, decided, wait, real_namespace, agent"
        f" FROM apflint_raw AS raw JOIN apflint_key AS key ON raw.key = key.key WHERE {IS_REQUEST}"
    )
    servers = {path: reader.server_number(file.server) for path, file in files.items()}
    batch: list[Sequence[object]] = []
    for number, server, audit_id, *fields in map(tuple, rows.toLocalIterator()):
        identity = hash(audit_id) if audit_id else None
        batch.append((numbers[number], servers[server], identity, *fields, audit_id if wanted.audit_id else None))
        if len(batch) >= _ROWS_PER_INSERT:
            database.insert("request", batch)
            batch = []
    database.insert("request", batch)
    unanswered = spark.sql(
        f"SELECT audit_id FROM apflint_raw WHERE class = {STAGES.index(RECEIVED)} AND audit_id <> ''"
        f" EXCEPT SELECT audit_id FROM apflint_raw WHERE {IS_REQUEST}"
    )
    database.insert("received", ((hash(audit_id),) for (audit_id,) in map(tuple, unanswered.toLocalIterator())))
    keys.unpersist()
    odd: dict[str, list[str]] = {path: [] for path in sorted(files)}
    for path, line in _collect(spark, f"SELECT server, line FROM apflint_raw WHERE class = {ODD}"):
        odd[path].append(line)
    for path, texts in odd.items():
        reader.read_odd_lines(files[path], texts)


def _collect(spark: Any, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(sql).collect()]


def _url(file: AuditLogFile) -> str:
    """Return the URL of a file."""
    return file.path if is_url(file.path) else Path(file.path).resolve().as_uri()


def _normalize(url: str) -> str:
    """Return a normalized URL, or the path of a local file. Spark reports `file:/path` for `file:///path`."""
    return f"/{unquote(url[5:]).lstrip('/')}" if url.startswith("file:") else url


def _time(name: str) -> str:
    """Return an SQL expression for a time, or NULL if it is not in the form of kube-apiserver."""
    return (
        f"CASE WHEN e.{name} LIKE '2___-__-__T__:__:__.______Z' AND e.{name} NOT LIKE '%T24%'"
        f" AND e.{name} NOT LIKE '% %' THEN TRY_CAST(e.{name} AS TIMESTAMP) END"
    )


def _user(name: str) -> str:
    """Return an SQL expression for a user as a struct. The groups of the user are a JSON list as a string."""
    return f"CASE WHEN e.{name} IS NOT NULL THEN named_struct('username', e.{name}.username, 'groups', to_json(e.{name}.groups)) END"


def _has_other_groups(name: str) -> str:
    """Return an SQL condition that is true if the groups may contain something other than strings."""
    return f"coalesce(exists(e.{name}.groups, name -> name IS NULL OR {_escape(is_ambiguous(['name']))}), FALSE)"


def _escape(sql: str) -> str:
    """Double the backslashes, because Spark reads a backslash in a string literal as the beginning of an escape sequence."""
    return sql.replace("\\", "\\\\")


_AMBIGUOUS = _escape(is_ambiguous(f"e.{text}" for text in _TEXTS))
# Spark ignores text after a JSON value, but not inside a list. So the line is also parsed as an item of a list.
_EVENT = f"""
    SELECT value AS line, file AS server, CAST(0 AS BIGINT) AS id,
        e.corrupt IS NULL AND coalesce(size(items) = 1, FALSE) AND NOT {_AMBIGUOUS}
            AND NOT {_has_other_groups("user")} AND NOT {_has_other_groups("impersonatedUser")}
            AND coalesce(substr(e.requestURI, 1, 1) = '/', TRUE) AND value NOT LIKE '%\\ufffd%' AND value NOT LIKE '%\\\\\\\\u0001%'
            AND coalesce(e.responseStatus.code BETWEEN 0 AND 9999, TRUE) AS is_plain,
        e.kind, e.apiVersion AS version, e.stage, e.auditID AS audit_id, e.verb, e.requestURI AS uri, {_user("user")} AS requester,
        {_user("impersonatedUser")} AS impersonated, e.objectRef AS reference, CAST(e.responseStatus.code AS INTEGER) AS code,
        coalesce(e.annotations.`{DECISION}`, CASE WHEN e.responseStatus.code = {TOO_MANY_REQUESTS} THEN e.responseStatus.reason END)
            AS decision, e.annotations.`{QUEUE_WAIT}` AS queue_wait,
        {_time("requestReceivedTimestamp")} AS received, {_time("stageTimestamp")} AS ended, e.userAgent AS agent
    FROM (
        SELECT value, file, from_json(concat('[', value, ']'), 'ARRAY<STRING>') AS items,
            from_json(value, '{" ".join(_SCHEMA.split())}', map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt',
                'allowSingleQuotes', 'false')) AS e
        FROM apflint_line WHERE trim(translate(value, concat(chr(9), chr(13)), '')) <> '')
"""
