"""SQL with which DuckDB reads the fields of audit events, from files or from text."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from apflint.replay.events import DECISION, QUEUE_WAIT, RECEIVED, TOO_MANY_REQUESTS
from apflint.replay.reduction_sql import is_ambiguous
from apflint.replay.sql_text import quote
from apflint.requests.list_options import LIST_VERBS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.replay.loaded_log import Wanted
    from apflint.replay.wrapper_sql import Fields

_USER: Fields = {"username": "VARCHAR", "groups": "JSON"}
_REFERENCE: Fields = dict.fromkeys(
    ("apiGroup", "resource", "subresource", "namespace", "name", "apiVersion"), "VARCHAR"
)
EVENT_FIELDS: Fields = {
    **dict.fromkeys(("kind", "apiVersion", "stage", "auditID", "verb", "requestURI", "userAgent"), "VARCHAR"),
    "user": _USER,
    "impersonatedUser": _USER,
    "objectRef": _REFERENCE,
    "responseStatus": {"code": "JSON", "reason": "VARCHAR"},
    "annotations": {DECISION: "VARCHAR", QUEUE_WAIT: "VARCHAR"},
    "requestReceivedTimestamp": "VARCHAR",
    "stageTimestamp": "VARCHAR",
}
"""SQL types of the fields of an audit event. A mapping is the type of an object."""
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
_TIME = "2___-__-__T__:__:__.______Z"
"""Pattern of a time as kube-apiserver writes it. DuckDB would also parse times with spaces, or without leading zeros."""
_CONTROL_CHARACTERS = "".join(map(chr, (*range(1, 9), *range(14, 32))))
_random = random.SystemRandom()  # the module `secrets` takes 10 ms to import
_DELIMITER_LENGTH = 4
"""Number of characters of a delimiter, which is the maximum in DuckDB."""
MAX_LINE_BYTES = 8 * 1024 * 1024
"""Maximum number of bytes in a line that DuckDB reads. Python reads files with longer lines."""
MAX_PREFIXED_LINE_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes in a line that DuckDB reads through `PrefixFileSystem`.

DuckDB reads twice as many bytes at once. Reads of 16 MiB take 60% more CPU time than reads of 8 MiB, because Python
returns their memory to the system each time.
"""
MAX_WRAPPED_LINE_BYTES = 2 * 1024 * 1024
"""Maximum number of bytes in a line with a prefix that `read_lines` reads. Each thread has a buffer for several lines."""


def read_event(wanted: Wanted) -> str:
    """Return the SQL expressions that compute the columns of the relation `event` from the fields of an audit event."""
    name = f"CASE WHEN verb IN ({', '.join(map(quote, LIST_VERBS))}) THEN objectRef.name END"
    texts = [
        "auditID",
        "objectRef.namespace",
        name,
        f'annotations."{QUEUE_WAIT}"',
        *(["userAgent"] if wanted.agent else []),
    ]
    # For `RequestReceived` events, a replay uses only the audit ID (the first of `texts`), so check only the audit ID.
    # `read_key` checks other fields, such as the user and the verb.
    is_plain = f"""
        CASE WHEN {_IS_RECEIVED} THEN NOT {is_ambiguous(texts[:1])}
        ELSE NOT {is_ambiguous(texts)} AND coalesce(starts_with(requestURI, '/'), TRUE)
            AND coalesce(CAST({_CODE} AS TEXT), '') = coalesce(CAST(responseStatus.code AS TEXT), '') END
    """
    return f"{is_plain} AS is_plain, {_EVENT}"


def read_json(paths: Iterable[str], fields: Fields, compression: str, max_line_bytes: int = MAX_LINE_BYTES) -> str:
    """Return a query that reads `fields` from files with one JSON object in each line.

    The query fails if a field of an object does not have the type that `fields` states, or if a line is longer than
    `max_line_bytes`. The buffer of each thread is twice as large.
    """
    columns = ", ".join(f"{quote(name)}: {quote(_type(kind))}" for name, kind in fields.items())
    # A single call of read_json for several files is unsafe: DuckDB 2.0.0 sometimes skips a line that is not JSON, and
    # reports no error.
    return " UNION ALL ".join(
        f"SELECT * FROM read_json({quote(path)}, columns = {{{columns}}}, format = 'newline_delimited', auto_detect = false,"
        f" maximum_object_size = {max_line_bytes}, compression = {quote(compression)})"
        for path in paths
    )


def read_lines(path: str, compression: str) -> str:
    """Return a query for the lines of a file that are not empty.

    The query needs a column delimiter, although a line is a single column. DuckDB would remove the
    delimiter if a line ended with it. So the delimiter is a random text, which does not occur in the
    log.
    """
    delimiter = "".join(_random.choice(_CONTROL_CHARACTERS) for _ in range(_DELIMITER_LENGTH))
    return (
        f"SELECT line FROM read_csv({quote(path)}, columns = {{'line': 'VARCHAR'}}, delim = {quote(delimiter)}, quote = '', escape = '',"
        f" header = false, auto_detect = false, max_line_size = {MAX_WRAPPED_LINE_BYTES},"
        f" buffer_size = {4 * MAX_WRAPPED_LINE_BYTES}, new_line = '\\n', compression = {quote(compression)})"
        " WHERE line <> ''"
    )


def quote_name(name: str) -> str:
    """Return the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _parse_time(text: str) -> str:
    """Return an SQL expression that converts a time field of the event.

    The value is NULL if the time is not in the form that kube-apiserver writes.
    """
    return f"CASE WHEN NOT {_IS_RECEIVED} AND {text} LIKE {quote(_TIME)} THEN try_strptime({text}, {quote(_TIME_FORMAT)}) END"


NO_TEXT = "CAST(NULL AS TEXT)"
_IS_RECEIVED = f"coalesce(stage = '{RECEIVED}', FALSE)"
_CODE = "TRY_CAST(CAST(responseStatus.code AS TEXT) AS INTEGER)"
_EVENT = f"""
    kind, apiVersion AS version, stage, auditID AS audit_id, verb, requestURI AS uri, "user" AS requester,
    impersonatedUser AS impersonated, objectRef AS reference, {_CODE} AS code,
    coalesce(annotations."{DECISION}", CASE WHEN {_CODE} = {TOO_MANY_REQUESTS} THEN responseStatus.reason END) AS decision, annotations."{QUEUE_WAIT}" AS queue_wait,
    {_parse_time("requestReceivedTimestamp")} AS received, {_parse_time("stageTimestamp")} AS ended, userAgent AS agent
"""


def _type(kind: Any) -> str:
    """Return the DuckDB type of a field, as a string."""
    if isinstance(kind, dict):
        fields = ", ".join(f'"{name}" {_type(field)}' for name, field in kind.items())
        return f"STRUCT({fields})"
    return str(kind)
