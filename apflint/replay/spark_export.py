"""Writes the Parquet files of a replay with Spark: the executors write the requests that they hold."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.replay.database_tables import create_table
from apflint.replay.exported_columns import NAME, SELECT_VALUES, select_exported
from apflint.replay.spark_database import SparkDatabase
from apflint.replay.spark_engine import describe_error, make_url
from apflint.sources.audit_logs import is_url
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.replay.loaded_log import Replay

_TIME = "CAST(timestamp_micros({value}) AS TIMESTAMP_NTZ)"
"""SQL expression of a time. Spark writes values of the type TIMESTAMP as INT96, which few tools read as UTC."""


def write_directory(replay: Replay, directory: str) -> tuple[str, int]:
    """Write the requests of a replay to a directory, which may be a URL. Replace an existing directory.

    Return the path of the directory, and the number of requests.
    """
    database = replay.log.database
    assert isinstance(database, SparkDatabase), "the engine is Spark"
    path = f"{directory.rstrip('/')}/{NAME}" if is_url(directory) else os.path.join(directory, NAME)
    create_table(database, "server_name", "number INTEGER, name TEXT", list(enumerate(replay.log.servers)))
    # SORT BY sorts only the rows of each file. ORDER BY would take as long as a second reading of the log.
    exported = f"{select_exported(SELECT_VALUES, _TIME)} SORT BY received, ended, audit_id"
    try:
        database.write_parquet(exported, make_url(path))
    except Exception as error:  # noqa: BLE001  # Spark Connect, Py4J and SQL have different errors
        raise UserError(f'--write-parquet: cannot write "{path}": {describe_error(error)}') from None
    ((number,),) = database.query("SELECT count(*) FROM logged")
    return path, int(str(number))
