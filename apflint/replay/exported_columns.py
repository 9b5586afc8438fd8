"""The columns of the Parquet files of a replay, as SQL for all databases."""

from __future__ import annotations

from apflint.named_tuple import NamedTuple
from apflint.replay.database_tables import DISTINGUISHER

NAME = "requests.parquet"
"""Name in the directory of `--write-parquet`: a file, or with Spark a directory of files."""


class ExportedColumn(NamedTuple):
    """A column of the Parquet file."""

    name: str
    sql: str
    """Expression on the columns of `logged`, which all databases evaluate."""
    type: str
    """Type of the expression, as DuckDB calls it."""
    convert: str = "{value}"
    """SQL expression of the exported value. `{value}` stands for the value of `sql`, and `{time}` for this value, in
    microseconds, as a time.
    """


def _of_classified(expression: str) -> str:
    return f"CASE WHEN outcome = 'classified' THEN {expression} END"


_TIME, _SECONDS = "{time}", "{value} / 1e6"
_IS_SEAT_HOLDER = "outcome = 'classified' AND rejected = 0 AND holds = 1 AND ended > received + coalesce(wait, 0)"
COLUMNS = (
    ExportedColumn("audit_id", "audit_id", "VARCHAR"),
    ExportedColumn("received", "received", "BIGINT", _TIME),
    ExportedColumn("ended", "ended", "BIGINT", _TIME),
    ExportedColumn("server", "server", "INTEGER", "(SELECT max(name) FROM server_name WHERE number = {value})"),
    ExportedColumn("user", '"user"', "VARCHAR", "nullif({value}, '')"),
    ExportedColumn("user_agent", "agent", "VARCHAR"),
    ExportedColumn("verb", "verb", "VARCHAR"),
    ExportedColumn("resource", "resource", "VARCHAR"),
    ExportedColumn("namespace", "namespace", "VARCHAR"),
    ExportedColumn("status", "code", "SMALLINT"),
    ExportedColumn("outcome", "outcome", "VARCHAR"),
    ExportedColumn("flow_schema", _of_classified("flow_schema"), "VARCHAR"),
    ExportedColumn("priority_level", _of_classified("priority_level"), "VARCHAR"),
    ExportedColumn("distinguisher", _of_classified(DISTINGUISHER), "VARCHAR"),
    ExportedColumn("rejected", "rejected", "INTEGER", "{value} = 1"),
    ExportedColumn("seats", _of_classified("seats"), "INTEGER"),
    ExportedColumn("wait_seconds", "wait", "BIGINT", _SECONDS),
    ExportedColumn(
        "seat_seconds",
        f"CASE WHEN {_IS_SEAT_HOLDER} THEN seats * (ended - received - coalesce(wait, 0)) END",
        "BIGINT",
        _SECONDS,
    ),
)
"""The columns of the file. The documentation of `replay` describes them."""
_VALUES = ", ".join(f'{column.sql} AS "{column.name}"' for column in COLUMNS)
SELECT_VALUES = f"SELECT {_VALUES} FROM logged"
"""Query for the values of all columns, before their conversion."""


def select_exported(source: str, time: str) -> str:
    """Return a query for the rows of the exported Parquet file.

    `source` is a query for the unconverted values of all columns. `time` is an SQL expression that
    converts the microseconds `{value}` to a time without a time zone. The query reads the names of the
    servers from the table `server_name`, which needs the columns `number` and `name`.
    """
    values = ((column, f'source."{column.name}"') for column in COLUMNS)
    columns = ", ".join(
        f'{column.convert.format(value=value, time=time.format(value=value))} AS "{column.name}"'
        for column, value in values
    )
    return f"SELECT {columns} FROM ({source}) AS source"
