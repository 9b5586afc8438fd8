"""Writes the classified requests of a replay as a Parquet file, for DuckDB, pandas, Spark and other tools."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb

from apflint.named_tuple import NamedTuple
from apflint.replay.database_tables import DISTINGUISHER
from apflint.replay.duckdb_engine import DuckDatabase
from apflint.replay.sql_text import quote
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.replay.loaded_log import Replay

FILE_NAME = "requests.parquet"
"""Name of the file in the directory of `--write-parquet`."""


class ExportedColumn(NamedTuple):
    """A column of the Parquet file."""

    name: str
    sql: str
    """Expression on the columns of `logged` that SQLite and DuckDB evaluate."""
    type: str
    """Type in the file, as DuckDB calls it."""
    convert: str
    """SQL expression that converts the value, with `{}` in place of the value. Empty if no conversion is needed."""


def _of_classified(expression: str) -> str:
    return f"CASE WHEN outcome = 'classified' THEN {expression} END"


_TIME, _SECONDS = "make_timestamp({})", "{} / 1e6"
_IS_SEAT_HOLDER = "outcome = 'classified' AND rejected = 0 AND holds = 1 AND ended > received + coalesce(wait, 0)"
COLUMNS = (
    ExportedColumn("audit_id", "audit_id", "VARCHAR", ""),
    ExportedColumn("received", "received", "BIGINT", _TIME),
    ExportedColumn("ended", "ended", "BIGINT", _TIME),
    ExportedColumn("server", "server", "INTEGER", "(SELECT name FROM server_name WHERE number = {})"),
    ExportedColumn("user", '"user"', "VARCHAR", "nullif({}, '')"),
    ExportedColumn("user_agent", "agent", "VARCHAR", ""),
    ExportedColumn("verb", "verb", "VARCHAR", ""),
    ExportedColumn("resource", "resource", "VARCHAR", ""),
    ExportedColumn("namespace", "namespace", "VARCHAR", ""),
    ExportedColumn("status", "code", "SMALLINT", ""),
    ExportedColumn("outcome", "outcome", "VARCHAR", ""),
    ExportedColumn("flow_schema", _of_classified("flow_schema"), "VARCHAR", ""),
    ExportedColumn("priority_level", _of_classified("priority_level"), "VARCHAR", ""),
    ExportedColumn("distinguisher", _of_classified(DISTINGUISHER), "VARCHAR", ""),
    ExportedColumn("rejected", "rejected", "INTEGER", "{} = 1"),
    ExportedColumn("seats", _of_classified("seats"), "INTEGER", ""),
    ExportedColumn("wait_seconds", "wait", "BIGINT", _SECONDS),
    ExportedColumn(
        "seat_seconds",
        f"CASE WHEN {_IS_SEAT_HOLDER} THEN seats * (ended - received - coalesce(wait, 0)) END",
        "BIGINT",
        _SECONDS,
    ),
)
"""The columns of the file. The documentation of `replay` describes them."""


def write_parquet(replay: Replay, directory: str, memory: str) -> int:
    """Write the selected requests to `requests.parquet` in a directory, which is created. Return their number.

    An existing file is replaced only after the new one is complete. The requests are in the order of their arrival. Raises UserError if the file cannot be written.
    """
    selected = ", ".join(f'{column.sql} AS "{column.name}"' for column in COLUMNS)
    source = f"SELECT {selected} FROM logged"
    own = replay.log.database
    database = own if isinstance(own, DuckDatabase) else DuckDatabase(memory)
    try:
        if database is not own:
            types = ", ".join(f'"{column.name}" {column.type}' for column in COLUMNS)
            database.query(f"CREATE TABLE exported ({types})")
            database.insert("exported", own.stream(source))
            source = "SELECT * FROM exported"
        database.query("CREATE OR REPLACE TABLE server_name (number INTEGER, name TEXT)")
        database.insert("server_name", list(enumerate(replay.log.servers)))
        return _copy(database, source, directory)
    finally:
        if database is not own:
            database.close()


def _copy(database: DuckDatabase, source: str, directory: str) -> int:
    """Run the statement that writes the file. Return the number of rows."""
    columns = ", ".join(
        f'{column.convert.format(_name(column)) or _name(column)} AS "{column.name}"' for column in COLUMNS
    )
    path = os.path.join(directory, FILE_NAME)
    temporary = os.path.join(directory, f".{FILE_NAME}.{os.getpid()}.tmp")
    try:
        os.makedirs(directory, exist_ok=True)
        try:
            ((number,),) = database.query(
                f"COPY (SELECT {columns} FROM ({source}) AS source ORDER BY source.received, source.ended, source.audit_id)"
                f" TO {quote(temporary)} (FORMAT parquet, COMPRESSION zstd)"
            )
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except (OSError, ValueError, duckdb.IOException) as error:  # ValueError if the name has a NUL
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f'--write-parquet: cannot write "{path}": {reason or error}') from None
    return int(str(number))


def _name(column: ExportedColumn) -> str:
    return f'source."{column.name}"'
