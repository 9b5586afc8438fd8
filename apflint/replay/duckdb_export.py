"""Writes the Parquet file of a replay with DuckDB, on this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb

from apflint.replay.duckdb_engine import DuckDatabase
from apflint.replay.exported_columns import COLUMNS, NAME, SELECT_VALUES, select_exported
from apflint.replay.sql_text import quote
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.replay.loaded_log import Replay

_TIME = "make_timestamp({value})"


def write_file(replay: Replay, directory: str, memory: str) -> tuple[str, int]:
    """Write the requests of a replay to a Parquet file in `directory`.

    The replay must come from the Python engine or from the DuckDB engine. Return the path of the
    file, and the number of requests.
    """
    source = SELECT_VALUES
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


def _copy(database: DuckDatabase, source: str, directory: str) -> tuple[str, int]:
    """Write the result of the query `source` to a Parquet file in `directory`. Return (path, number of rows).

    Raises UserError if the file cannot be written.
    """
    path = os.path.join(directory, NAME)
    temporary = os.path.join(directory, f".{NAME}.{os.getpid()}.tmp")
    try:
        os.makedirs(directory, exist_ok=True)
        try:
            ((number,),) = database.query(
                f"COPY ({select_exported(source, _TIME)} ORDER BY source.received, source.ended, source.audit_id)"
                f" TO {quote(temporary)} (FORMAT parquet, COMPRESSION zstd)"
            )
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except (OSError, ValueError, duckdb.IOException) as error:  # ValueError if the name has a NUL
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f'--write-parquet: cannot write "{path}": {reason or error}') from None
    return path, int(str(number))
