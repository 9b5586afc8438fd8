"""Writes the classified requests of a replay as Parquet, for DuckDB, pandas, Spark and other tools."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from apflint.replay.spark_engine import find_master
from apflint.sources.audit_logs import is_url
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.replay.loaded_log import Replay


def check_target(directory: str, engine: str, remote: str | None) -> None:
    """Raise UserError if an engine cannot write to a directory. `remote` is the URL of a Spark Connect server, or None."""
    if engine != "spark":
        if is_url(directory):
            raise UserError(f"--write-parquet: only --engine spark writes to {directory}; use a local directory")
        if find_spec("duckdb") is None:
            raise UserError("--write-parquet needs DuckDB. Install it with: pip install 'apflint[replay]'")
    elif not is_url(directory) and (remote or not find_master().startswith("local")):
        raise UserError(
            f'--write-parquet: executors of Spark on other machines cannot write to your directory "{directory}"; use a URL'
            " such as s3a://BUCKET/PATH"
        )


def write_parquet(replay: Replay, directory: str, memory: str) -> tuple[str, int]:
    """Write the selected requests to `requests.parquet` in a directory. Return the path, and the number of requests.

    The directory is created if it does not exist. Python and DuckDB write a file with the requests in the order of
    their arrival, and replace an existing file only after the new file is complete. With Spark, `requests.parquet` is a
    directory: the executors write several files, and the requests of each file are in the order of their arrival.
    Raises UserError if the requests cannot be written.
    """
    if replay.log.engine == "spark":
        from apflint.replay.spark_export import write_directory

        return write_directory(replay, directory)
    from apflint.replay.duckdb_export import write_file

    return write_file(replay, directory, memory)
