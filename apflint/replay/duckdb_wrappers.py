"""Reads events in wrappers with DuckDB.

SQL writes the events without wrappers to a temporary file, which is read like a plain log.

DuckDB's functions for JSON in a string would read the events without a file. But they do not report a key that occurs
twice, and finding such keys takes as long as writing the file.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from apflint.named_tuple import NamedTuple
from apflint.replay.duckdb_events import EVENT_FIELDS, quote_name, read_event, read_json, read_lines
from apflint.replay.sql_text import quote
from apflint.replay.wrapper_sql import make_unwrapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.duckdb_engine import DuckDatabase
    from apflint.replay.loaded_log import Wanted
    from apflint.requests.log_wrappers import Wrapper

_SAMPLE_ROWS = 1_000
NO_LINE = "0"
"""Placeholder for a line whose text DuckDB does not keep after parsing. Python then reads the whole file."""
_NO_NAME = '""'
_FILE_FORMAT = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '{', USE_TMP_FILE false"
"""Format of a file with one event per line.

A line has a single column, so the delimiter is never written. DuckDB searches a value for the first character that needs
quotes, and the delimiter is one. With the first character of an event as the delimiter, the search ends immediately.
"""


class UnwrappedEvents(NamedTuple):
    """A query that reads the events of files without their wrappers, and facts about these events.

    A wrapper is the text or the JSON object that a log collector puts around an event.
    """

    event: str
    """SQL for the relation `event`, without the hash of the audit ID."""
    number: int | None = None
    """Number of events and other lines, or None if it is not known."""
    server: str = ""
    """Name of the API server of events for which `event` has no name. Empty if the wrapper contains no server names."""
    has_all_servers: bool = False
    """Whether each event must have the name of its server."""

    def check_number(self, number: int) -> None:
        """Raise an error if the query has read `number` rows instead of `self.number`: an event contains a line break."""
        if number != self.number:
            raise duckdb.InvalidInputException("an event contains a line break")


@contextmanager
def unwrap_events(
    database: DuckDatabase, path: str, compression: str, wrapper: Wrapper, wanted: Wanted
) -> Iterator[UnwrappedEvents]:
    """Extract the events in a file into a temporary file, and yield a query that reads the temporary file.

    The temporary file exists during the block. Most events have the same API server. In the temporary
    file, an event of another server gets an additional key with the name of its server. If a line
    contains no event that DuckDB can extract, Python must read the line. In the temporary file, this
    line becomes an object with one key, whose value is the line. Both keys are random, so that no log
    contains them.
    """
    unwrapping = make_unwrapping(wrapper, quote_name, "JSON")
    mark = secrets.token_hex(8)
    line, server = f"line-{mark}", f"server-{mark}"
    # `read_json` fails if a line is damaged, and then Python reads the whole file. So with `read_json`, the query does
    # not need the text of lines.
    if unwrapping.fields:
        lines, line_column = read_json([path], unwrapping.fields, compression), quote(NO_LINE)
    else:
        lines, line_column = read_lines(path, compression), "line"
    usual = _NO_NAME
    columns, event = f"{line_column} AS line, {unwrapping.text} AS text", "text"
    if wrapper.server:
        name = f"coalesce({unwrapping.server}, {quote(_NO_NAME)})"
        # To add the name of the server, DuckDB copies the event, which takes time. So the events of the
        # server with the most frequent name get no additional key.
        ((found,),) = database.query(
            f"SELECT mode(name) FROM (SELECT {name} AS name FROM ({lines}) LIMIT {_SAMPLE_ROWS})"
        )
        usual = str(found or _NO_NAME)
        columns = f"{columns}, {name} AS name"
        event = (
            f"CASE WHEN name = {quote(usual)} THEN text ELSE concat('{{\"{server}\":', name, ',', substr(text, 2)) END"
        )
    output = f"""
        SELECT CASE WHEN text IS NULL THEN concat('{{"{line}":', to_json(line), '}}') ELSE {event} END FROM (SELECT {columns} FROM ({lines}))
    """
    target = os.path.join(database.directory, f"{mark}.json")
    try:
        ((written,),) = database.query(f"COPY ({output}) TO {quote(target)} ({_FILE_FORMAT})")
        fields = {**EVENT_FIELDS, line: "VARCHAR", server: "VARCHAR"}
        names = f'"{line}" AS line, "{server}" AS server'
        event = f"SELECT {names}, {read_event(wanted)} FROM ({read_json([target], fields, 'none')})"
        yield UnwrappedEvents(event, int(str(written)), str(json.loads(usual)))
    finally:
        if os.path.exists(target):
            os.unlink(target)
