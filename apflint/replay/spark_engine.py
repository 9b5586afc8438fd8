"""The engine for logs of any size: Spark lists and reads the files, and its executors keep and evaluate the requests.

Executors execute only SQL, so they do not need apflint. This machine receives distinct attribute tuples, sums and histograms.
Python reads the lines that are not audit events, or that contain an event in an unusual form.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import socket
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from urllib.request import proxy_bypass

from apflint.named_tuple import NamedTuple
from apflint.replay.database_tables import create_log_tables, create_table
from apflint.replay.events import DECISION, QUEUE_WAIT, RECEIVED, TOO_MANY_REQUESTS
from apflint.replay.loaded_log import Log, Wanted
from apflint.replay.python_engine import EventReader, OddRecord, find_format, is_beginning
from apflint.replay.reduction_sql import IS_REQUEST, ODD, STAGES, is_ambiguous, read_key, reduce_events, select_request
from apflint.replay.spark_database import SparkDatabase
from apflint.replay.spark_lists import is_unicode
from apflint.replay.spark_wrappers import OTHER_LINE, SEPARATOR, unwrap_lines
from apflint.replay.sql_text import quote
from apflint.replay.wrapper_sql import can_unwrap
from apflint.requests.log_wrappers import JSON_ARRAY, PLAIN
from apflint.sources.audit_logs import AuditLogFile, Block, find_compression, is_url, read_blocks
from apflint.sources.file_reading import open_without_waiting
from apflint.sources.log_names import WHOLE_LOG, OmittedObjects, ReadPeriod, StoredObject, select_logs
from apflint.user_error import UserError
from apflint.wording import count_noun

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
_MAX_PYTHON_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of the lines that Python reads on this machine, and of the local files that only Python can read."""
_ONE_VALUE = (
    "Spark cannot split a JSON value that has several lines; write each record, or each list of records, in one line, for"
    " example with jq -c '.[]'"
)
_SERVER = re.compile(r"sc://(?:\[([0-9A-Fa-f:.]+)\]|([^\s/:;?#@\[\]]+))(?::([0-9]{1,5}))?(?:/(?:;.*)?)?")
"""URL of a Spark Connect server: an IPv6 address or a host, a port, and parameters such as a token."""
_DEFAULT_PORT = 15002
_CONNECT_SECONDS = 10.0
_GLOB = re.compile(r"[][{}*?\\]")
"""Characters of patterns in the paths that Spark reads."""
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables with proxies that gRPC uses."""


def read_log(
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    report: Callable[[int], object] = lambda _: None,
    *,
    remote: str | None = None,
    period: ReadPeriod = WHOLE_LOG,
) -> Log:
    """Read files and URLs with Spark: a Spark Connect server at `remote`, or a local Spark.

    Objects below a URL are left out if their names have times outside of `period`.

    Raises UserError if Spark is not installed or not reachable, and if it cannot read a URL.
    """
    if remote and (local := next((file.name for file in files if not is_url(file.path)), None)):
        raise UserError(f"{local}: the Spark server cannot read your files; use a URL such as s3a://BUCKET/PATH")
    with ExitStack() as stack:
        spark = stack.enter_context(_open_session(remote))
        files, omitted = _list_files(spark, files, period)
        distributed = [file for file in files if file.is_remote or _is_readable(file, wanted.event_field)]
        others = [file for file in files if file not in distributed]
        if others:
            _require_small(others, _describe_format(others[0]))
        database = SparkDatabase(spark)
        create_log_tables(database)
        reader = EventReader(wanted, namespaces, database.insert, hash_id=str)
        reader.coverage.omitted += omitted
        odd: dict[AuditLogFile, Callable[[EventReader], None]] = {}
        try:
            if distributed:
                odd = _read_files(database, reader, distributed, wanted)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001  # Spark Connect, Py4J and SQL have different errors
            if any(file.is_remote for file in distributed):
                raise UserError(f"Spark cannot read the log: {describe_error(error)}") from None
            _require_small(files, f"Spark cannot read the log: {describe_error(error)}")
            distributed = []  # Spark failed, so Python reads all files
        for file in dict.fromkeys((*files, *odd)):  # in the order of the files, to find the first unreadable line
            if file in odd:
                reader.coverage.files -= 1  # reading the lines counts the file again
                odd[file](reader)
            elif file not in distributed:
                reader.read_file(file)
            reader.flush()
            report(file.size)
        database.flush()
        database.end_session = stack.pop_all().close
    return Log(database, reader.tuples, reader.servers, reader.coverage, "spark")


def _require_small(files: Sequence[AuditLogFile], problem: str) -> None:
    """Raise UserError if the files, which Spark cannot read, are too large for Python.

    Python keeps all their requests on this machine. The message begins with `problem`.
    """
    size = sum(file.size for file in files)
    if size > _MAX_PYTHON_BYTES:
        raise UserError(
            f"{problem}. Python reads at most {_describe_size(_MAX_PYTHON_BYTES)} of files that Spark cannot read, and"
            f" these files have {_describe_size(size)}: use --engine duckdb"
        )


def _describe_format(file: AuditLogFile) -> str:
    """Return a clause about the format of a local file that Spark cannot read."""
    block = next(read_blocks(file), None)
    if block is not None and is_beginning(block.data):
        return f"{file.name}: {_ONE_VALUE}"
    return f"{file.name}: Spark cannot read the events of this file"


def _describe_size(size: int) -> str:
    return f"{math.ceil(size / 1024**2):,} MiB"


def _list_files(
    spark: Any, files: Sequence[AuditLogFile], period: ReadPeriod
) -> tuple[list[AuditLogFile], list[OmittedObjects]]:
    """Return (files to read, omitted objects). If `files` contains a URL prefix, return the objects below it.

    For example, the prefix `s3a://logs/audit` becomes one file for each object below
    `s3a://logs/audit/`. Spark lists the objects with its own credentials. Objects are omitted if their
    names have times outside of `period`.
    """
    listed: list[AuditLogFile] = []
    omitted: list[OmittedObjects] = []
    for file in files:
        if not file.is_remote:
            listed.append(file)
            continue
        try:
            found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(make_url(file.path))
            listing = found.select("path", "length").orderBy("path").collect()
        except Exception as error:  # noqa: BLE001  # Spark Connect, Py4J and SQL have different errors
            raise UserError(f"{file.path}: Spark cannot list it: {describe_error(error)}") from None
        # Spark reports `file:/path` for `file:///path`.
        stored = [StoredObject(re.sub("^file:/(?!/)", "file:///", path), size) for path, size in listing]
        if not stored:
            raise UserError(f"{file.path}: no such object, and no objects below this prefix")
        prefix = _normalize(make_url(file.path))
        if all(_normalize(item.url).startswith(f"{prefix.rstrip('/')}/") for item in stored):
            named = {
                f"{file.path.rstrip('/')}/{_normalize(item.url)[len(prefix.rstrip('/')) + 1 :]}": item
                for item in stored
            }
            shown = [StoredObject(name, item.size) for name, item in named.items()]
            kept = select_logs(f"{file.path.rstrip('/')}/", shown, period, omitted.append)
            listed += (AuditLogFile(item.url, named[item.url].url, None, item.size) for item in kept)
        else:
            listed += (AuditLogFile(item.url, item.url, None, item.size) for item in stored)
    return listed, omitted


@contextmanager
def _open_session(remote: str | None) -> Iterator[Any]:
    """Open a Spark session, and end it after the block. Hide the terminal output of Spark and of its Java process."""
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
            "spark.sql.shuffle.partitions": "4",
        }
        builder = builder.master(find_master()).config(map=settings)
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)  # the Java process inherits the null device as standard error, so its output stays hidden
    try:
        spark = (builder.remote(remote) if remote else builder).getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.caseSensitive", "true")  # some log records have the key `category`, others `Category`
    except Exception as error:  # noqa: BLE001  # Spark Connect and Py4J have different errors
        place = f"the Spark server {_hide_parameters(remote)}" if remote else "a local Spark"
        raise UserError(f"cannot use {place}: {describe_error(error)}") from None
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
    try:
        yield spark
    finally:
        spark.stop()


def find_master() -> str:
    """Return the URL of the Spark master: `SPARK_MASTER`, or `local[*]` (all cores) if this variable is not set."""
    return os.environ.get("SPARK_MASTER", "local[*]")


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
    except (OSError, UnicodeError) as error:  # UnicodeError for an invalid host name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot use the Spark server {name}: {reason}") from None


def _hide_parameters(remote: str) -> str:
    """Return the URL of a server without its parameters, which may contain a token."""
    return remote.partition(";")[0].removesuffix("/")


def describe_error(error: Exception) -> str:
    """Return the first line of the message of a Spark error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _is_readable(file: AuditLogFile, event_field: Sequence[str]) -> bool:
    """Return whether Spark can read a local file, and can extract the audit events from its lines by SQL.

    Return False if the compression does not fit the file name, because Spark detects the compression by
    the file name. Return False for Zstandard, because Spark needs native libraries for it.
    """
    if file.inode is None:
        return False
    try:
        with open(file.path, "rb", opener=open_without_waiting) as stream:
            compression = find_compression(stream)
    except OSError:
        return False
    wrapper = find_format(file, event_field)
    is_named = compression == ("gzip" if file.path.endswith(".gz") else "none")
    return (
        is_named
        and wrapper is not None
        and (wrapper in (PLAIN, JSON_ARRAY) or can_unwrap(wrapper) or bool(wrapper.items))
    )


def _read_files(
    database: SparkDatabase, reader: EventReader, files: Sequence[AuditLogFile], wanted: Wanted
) -> dict[AuditLogFile, Callable[[EventReader], None]]:
    """Define the tables `request` and `received` from the events of files.

    Return functions that read the remaining lines of files.
    """
    spark = database.spark
    lines = spark.read.text([_escape_glob(make_url(file.path)) for file in files], lineSep="\n")
    lines.selectExpr("value", "_metadata.file_path AS file").createOrReplaceTempView("apflint_line")
    spark.sql(_escape(unwrap_lines("apflint_line", wanted.event_field))).createOrReplaceTempView("apflint_text")
    named = [name for name in reader.namespaces if "\\" not in name and "'" not in name]
    database.define("raw", spark.sql(reduce_events(_EVENT, "unix_micros", wanted, named)).persist())
    by_path = {_normalize(make_url(file.path)): file for file in files}
    found: dict[str, AuditLogFile] = {}
    odd: dict[AuditLogFile, _OddLines] = {}
    read: set[AuditLogFile] = set()
    for server, kind, is_other, count, size in _collect(database, _CLASSES):
        path = server.partition(SEPARATOR)[0]
        file = found[server] = by_path.get(_normalize(unquote(path))) or AuditLogFile(path, path)
        if kind < len(STAGES):
            reader.coverage.stages[STAGES[kind]] += count
            read.add(file)
        elif is_other:
            reader.coverage.other_records += count
            read.add(file)
        else:
            before = odd.get(file, _OddLines(0, 0))
            odd[file] = _OddLines(before.number + count, before.size + size)
    whole = [file for file, lines in odd.items() if file not in read and lines.number > 1]
    if sum(lines.size for lines in odd.values()) > _MAX_PYTHON_BYTES:
        raise _describe_odd_lines(spark, odd, whole)
    reader.coverage.files += len(files)
    _define_requests(database, reader, found, wanted)
    return _collect_odd_lines(database, found, whole)


class _OddLines(NamedTuple):
    """Lines, and records of lists, that only Python can read."""

    number: int
    size: int
    """Size in bytes."""


def _collect_odd_lines(
    database: SparkDatabase, files: dict[str, AuditLogFile], whole: Sequence[AuditLogFile]
) -> dict[AuditLogFile, Callable[[EventReader], None]]:
    """Return, for each file with lines that only Python can read, a function that reads them.

    The keys of `files` are the values of the column `server`. `whole` are files of which Spark reads no line. They may be
    one JSON value over several lines.
    """
    odd: dict[AuditLogFile, tuple[list[str], list[OddRecord]]] = {}
    query = f"SELECT server, line FROM raw WHERE class = {ODD} AND NOT {_IS_OTHER} ORDER BY server"
    for server, line in _collect(database, query):
        if (file := files[server]) in whole:
            continue
        lines, records = odd.setdefault(file, ([], []))
        checksum, list_server, text = line.split(SEPARATOR, 2)
        if checksum:
            records.append(OddRecord(text, list_server, int(checksum)))
        else:
            lines.append(text)

    def read_lines(reader: EventReader, file: AuditLogFile) -> None:
        reader.read_odd_lines(file, *odd[file])

    def read_text(reader: EventReader, file: AuditLogFile) -> None:
        ((text,),) = database.spark.read.text(_escape_glob(make_url(file.path)), wholetext=True).collect()
        reader.read_file_blocks(file, iter([Block(text.encode())]))

    return {
        **{file: partial(read_lines, file=file) for file in odd},
        **{file: partial(read_text, file=file) for file in whole},
    }


def _describe_odd_lines(spark: Any, odd: dict[AuditLogFile, _OddLines], whole: Collection[AuditLogFile]) -> UserError:
    """Return an error for lines that only Python can read, and that are too large for this machine."""
    file, lines = max(odd.items(), key=lambda item: item[1].size)
    maximum = _describe_size(_MAX_PYTHON_BYTES)
    if file in whole:
        (first,) = spark.read.text(_escape_glob(make_url(file.path)), lineSep="\n").limit(1).collect()
        if is_beginning(first.value.encode()):
            return UserError(
                f"{file.name}: {_ONE_VALUE}. Python reads at most {maximum}, and the file has {_describe_size(lines.size)}"
            )
    number, size = sum(item.number for item in odd.values()), sum(item.size for item in odd.values())
    return UserError(
        f"Spark cannot read {count_noun(number, 'line')} ({_describe_size(size)}), most of them in {file.name}: these lines"
        " are not audit events, or contain results of queries, converted records, or too many nested wrappers. Python"
        f" reads at most {maximum} of lines that Spark cannot read: use --engine duckdb for a part of the log, or convert"
        " the log to one event in each line"
    )


def _define_requests(
    database: SparkDatabase, reader: EventReader, files: dict[str, AuditLogFile], wanted: Wanted
) -> None:
    """Create the tables `request` and `received` from the table `raw`.

    The column `tuple` of `request` contains the index of the attribute tuple of the request, and the
    column `server` contains the index of the API server. The keys of `files` are the values of the
    column `server` of `raw`.
    """
    database.query(
        "CREATE TABLE key AS SELECT CAST(row_number() OVER (ORDER BY key) AS INTEGER) AS number, key"
        f" FROM (SELECT DISTINCT key FROM raw WHERE {IS_REQUEST})"
    )
    tuples = [
        (number, reader.number_attributes(read_key(key)))
        for number, key in _collect(database, "SELECT number, key FROM key")
    ]
    for table, columns, rows in (
        ("key_tuple", "number INTEGER, tuple INTEGER", tuples),
        (
            "server_number",
            "name TEXT, number INTEGER",
            [
                (server, reader.server_number(server.partition(SEPARATOR)[2] or files[server].server))
                for server in sorted(files)
            ],
        ),
    ):
        create_table(database, table, columns, rows)
    database.query(
        f"CREATE TABLE request AS SELECT key_tuple.tuple, server_number.number AS server, {select_request(wanted)}"
        " FROM raw JOIN server_number ON raw.server = server_number.name"
        f" JOIN key ON raw.key = key.key JOIN key_tuple ON key.number = key_tuple.number WHERE {IS_REQUEST}"
    )
    database.query(
        f"CREATE TABLE received AS SELECT id FROM raw WHERE class = {STAGES.index(RECEIVED)} AND id IS NOT NULL"
    )


def _collect(database: SparkDatabase, sql: str) -> list[Any]:
    return list(database.query(sql))


def make_url(path: str) -> str:
    """Return the URL from which Spark reads a file, or to which Spark writes it."""
    if path.startswith("s3://"):  # Hadoop's file system for S3 has the scheme `s3a`
        return f"s3a{path.removeprefix('s3')}"
    # The path is not percent-encoded, because Hadoop does not decode `%20`.
    return path if is_url(path) else f"file://{os.path.realpath(path)}"


def _normalize(path: str) -> str:
    """Return a path or URL in a form that can be compared: the URL of a local file becomes a path with one slash."""
    return f"/{path[5:].lstrip('/')}" if path.startswith("file:") else path


def _time(name: str) -> str:
    """Return an SQL expression for a time field.

    The value is NULL if the time is not in the form that kube-apiserver writes.
    """
    return (
        f"CASE WHEN e.{name} LIKE '2___-__-__T__:__:__.______Z' AND e.{name} NOT LIKE '%T24%'"
        f" AND e.{name} NOT LIKE '% %' THEN TRY_CAST(e.{name} AS TIMESTAMP) END"
    )


def _user(name: str) -> str:
    """Return an SQL expression for a user as a struct. The groups of the user are a JSON list as a string."""
    return f"CASE WHEN e.{name} IS NOT NULL THEN named_struct('username', e.{name}.username, 'groups', to_json(e.{name}.groups)) END"


def _has_other_groups(name: str) -> str:
    """Return an SQL condition that is true if the groups of a user may contain values other than strings.

    `name` is the field of the event that contains the user: `user` or `impersonatedUser`.
    """
    return f"coalesce(exists(e.{name}.groups, name -> name IS NULL OR {_escape(is_ambiguous(['name']))}), FALSE)"


def _escape(sql: str) -> str:
    """Double the backslashes, because Spark reads a backslash in a string literal as the beginning of an escape sequence."""
    return sql.replace("\\", "\\\\")


def _escape_glob(url: str) -> str:
    return _GLOB.sub(r"\\\g<0>", url)


_IS_OTHER = f"coalesce(line = {quote(OTHER_LINE)}, FALSE)"
"""SQL condition for log records that contain no audit event."""
_CLASSES = f"""
    SELECT server, class, is_other, count(*), sum(octet_length(line)) FROM (SELECT *, {_IS_OTHER} AS is_other FROM raw)
    GROUP BY server, class, is_other
"""
"""SQL query for the number of rows, by file, server and class."""
_AMBIGUOUS = _escape(is_ambiguous(f"e.{text}" for text in _TEXTS))
# Spark ignores text after a JSON value, but rejects such text inside a list. So also parse the line
# as an item of a list, to detect lines with text after the event.
_EVENT = f"""
    SELECT line, concat_ws('{SEPARATOR}', file, server) AS server, xxhash64(e.auditID) AS id,
        e.corrupt IS NULL AND coalesce(size(items) = 1, FALSE) AND NOT {_AMBIGUOUS}
            AND NOT {_has_other_groups("user")} AND NOT {_has_other_groups("impersonatedUser")}
            AND coalesce(substr(e.requestURI, 1, 1) = '/', TRUE) AND line NOT LIKE '%\\ufffd%'
            AND (NOT contains(line, '\\\\u') OR (instr(line, '\\\\u0001') = 0 AND {_escape(is_unicode("text"))}))
            AND coalesce(e.responseStatus.code BETWEEN 0 AND 9999, TRUE) AS is_plain,
        e.kind, e.apiVersion AS version, e.stage, e.auditID AS audit_id, e.verb, e.requestURI AS uri, {_user("user")} AS requester,
        {_user("impersonatedUser")} AS impersonated, e.objectRef AS reference, CAST(e.responseStatus.code AS INTEGER) AS code,
        coalesce(e.annotations.`{DECISION}`, CASE WHEN e.responseStatus.code = {TOO_MANY_REQUESTS} THEN e.responseStatus.reason END)
            AS decision, e.annotations.`{QUEUE_WAIT}` AS queue_wait,
        {_time("requestReceivedTimestamp")} AS received, {_time("stageTimestamp")} AS ended, e.userAgent AS agent
    FROM (
        SELECT line, file, server, text, from_json(concat('[', text, ']'), 'ARRAY<STRING>') AS items,
            from_json(text, '{" ".join(_SCHEMA.split())}', map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt',
                'allowSingleQuotes', 'false')) AS e
        FROM apflint_text)
"""
