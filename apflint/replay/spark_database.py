"""The tables of a replay in Spark: relations that the executors compute and keep.

The machine that runs apflint receives only results of queries: distinct attribute tuples, sums and histograms, but no
requests. The SQL statements are the same as for SQLite and DuckDB. Tables are temporary views, and UPDATE defines a new
relation, because rows are never changed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from apflint.replay.database_tables import Row

_STATEMENT = re.compile(
    r"\s*(?:CREATE (?:TABLE|VIEW) (?P<created>\w+) AS (?P<query>.*)|CREATE TABLE (?P<empty>\w+) \((?P<columns>.*)\)"
    r"|UPDATE (?P<updated>\w+) SET (?P<column>\w+) = (?P<value>.*?) WHERE (?P<condition>.*)"
    r"|DROP (?:TABLE|VIEW) (?P<dropped>\w+)|ALTER TABLE (?P<old>\w+) RENAME TO (?P<new>\w+))\s*",
    re.DOTALL,
)
_KEPT = ("raw", "key", "request", "answered", "selected")
"""Tables whose rows the executors keep, in memory and on their disks, instead of computing them for each query."""
_LARGE = ("request", "received")
_ROWS_PER_RELATION = 100_000
"""Maximum number of rows of a large table that Python has read and that are not yet a relation of Spark."""
HASHES = {"id": "xxhash64(id)", "uri": "CAST(hash(uri) >> 1 AS BIGINT)"}
"""SQL expressions that compute the hashes in these columns from strings."""


class SparkDatabase:
    """The database of a replay with Spark. Its tables are temporary views of a Spark session."""

    has_fast_windows = True
    is_distributed = True

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.rows_received = 0
        """Number of rows that this machine has received from Spark."""
        self.end_session: Callable[[], object] = lambda: None
        """Function that ends the session. The function does nothing until the database becomes responsible for the
        session.
        """
        self._schemas: dict[str, str] = {}
        self._waiting: dict[str, list[Row]] = {}
        """Rows of each table that are not yet in a relation."""
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")  # `"a"` is a column, as in SQLite and DuckDB

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement, and return its rows."""
        match = _STATEMENT.fullmatch(sql)
        if match is None:
            rows = [tuple(row) for row in self.spark.sql(_escape(sql)).collect()]
            self.rows_received += len(rows)
            return rows
        if match["created"]:
            relation = self.spark.sql(_escape(match["query"]))
            self.define(match["created"], relation.persist() if match["created"] in _KEPT else relation)
        elif match["empty"]:
            columns = match["columns"].replace(" PRIMARY KEY", "").replace("TEXT", "STRING").replace('"', "`")
            self._schemas[match["empty"]] = " ".join(columns.split())
            self.define(match["empty"], self.spark.createDataFrame([], self._schemas[match["empty"]]))
        elif match["updated"]:
            relation = self.spark.table(match["updated"])
            changed = (
                f"CASE WHEN {match['condition']} THEN {match['value']} ELSE {match['column']} END AS {match['column']}"
            )
            columns = [_escape(changed) if name == match["column"] else f"`{name}`" for name in relation.columns]
            self.define(match["updated"], relation.selectExpr(*columns))
        elif match["dropped"]:
            self.spark.catalog.dropTempView(match["dropped"])
        else:
            self.define(match["new"], self.spark.table(match["old"]))
            self.spark.catalog.dropTempView(match["old"])
        return []

    def stream(self, sql: str) -> Iterator[tuple[object, ...]]:
        """Run a statement, and yield its rows one after the other, because all rows together may exceed the memory."""
        for row in self.spark.sql(_escape(sql)).toLocalIterator():
            self.rows_received += 1
            yield tuple(row)

    def write_parquet(self, sql: str, url: str) -> None:
        """Let the executors write the rows of a query to a directory of Parquet files, and replace an existing directory."""
        self.spark.sql(_escape(sql)).write.mode("overwrite").option("compression", "zstd").parquet(url)

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows to a table. If rows are shorter than the table, the remaining columns are NULL.

        Values of the columns `id` and `uri` are strings, whose hashes are stored.
        """
        waiting = self._waiting.setdefault(table, [])
        waiting += rows
        if table not in _LARGE or len(waiting) >= _ROWS_PER_RELATION:
            self._append(table)

    def flush(self) -> None:
        """Append the remaining rows that `insert` has kept in memory to the large tables."""
        for table in _LARGE:
            self._append(table)

    def _append(self, table: str) -> None:
        rows = self._waiting.pop(table, [])
        if not rows:
            return
        columns = [column.split()[0].strip("`") for column in self._schemas[table].split(",")]
        schema, expressions = self._schemas[table], [f"`{name}`" for name in columns]
        if table in _LARGE:
            schema = re.sub(r"\b(id|uri) BIGINT\b", r"\1 STRING", schema)
            expressions = [
                f"CASE WHEN {name} IS NOT NULL THEN {HASHES[name]} END AS {name}" if name in HASHES else f"`{name}`"
                for name in columns
            ]
        padded = [(*row, *(None,) * (len(columns) - len(row))) for row in rows]
        added = self.spark.createDataFrame(padded, schema).selectExpr(*expressions)
        relation = self.spark.table(table).union(added)
        # All tables but those of requests are small enough to be sent to every executor.
        self.define(table, relation if table in _LARGE else relation.hint("broadcast"))

    def define(self, name: str, relation: DataFrame) -> None:
        """Define the table `name` with the rows of `relation`."""
        relation.createOrReplaceTempView(name)

    def close(self) -> None:
        """Delete all rows, and end the session."""
        self.end_session()


def _escape(sql: str) -> str:
    """Double the backslashes, which Spark reads as the beginning of an escape sequence."""
    return sql.replace("\\", "\\\\")
