"""Spark SQL for the records in lists: batches of Azure, CloudWatch and OpenTelemetry, `List` objects, and JSON arrays.

Python's reader is the reference. If it might read a list in another way, the SQL returns NULL, and Python reads the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.replay.reduction_sql import is_ambiguous
from apflint.replay.sql_text import quote
from apflint.requests.converted_records import CONVERTED_KEYS
from apflint.requests.log_wrappers import (
    BATCH_KEYS,
    CONTROL_MESSAGE,
    MESSAGE_TYPE,
    OTLP_SERVERS,
    WRAPPED_IN_FIELD,
    WRAPPERS,
    Wrapper,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTS = tuple(wrapper for wrapper in WRAPPERS if wrapper.items)
OTHER_RECORD = f'{{"{MESSAGE_TYPE}":"{CONTROL_MESSAGE}"}}'
"""A log record that Python's reader counts, because it contains no audit event."""
_RESOURCE = "STRUCT<attributes: ARRAY<STRUCT<key: STRING, value: STRUCT<stringValue: STRING>>>>"
_TYPES = {
    "hits": "STRUCT<hits: ARRAY<STRING>>",
    "resourceLogs": f"ARRAY<STRUCT<resource: {_RESOURCE}, scopeLogs: ARRAY<STRUCT<logRecords: ARRAY<STRING>>>>>",
}
"""Types of lists that are nested, by the key of the outermost value."""
_NO_SERVER = "CAST(NULL AS STRING)"
_EMPTY = "CAST(array() AS ARRAY<STRING>)"
_SPACE = r"[ \t\r\n]"
_TEXT_ITEM = rf'[\[,]{_SPACE}*"([{{]|\\u007[bB])'
"""Pattern of an item of a list that is a string and begins with a brace. Spark would return the same text for an object."""
_PAIR = r"(\\+)u[dD][89abAB][0-9A-Fa-f]{2}\1u[dD][c-fC-F][0-9A-Fa-f]{2}"
_SURROGATE = r"\\u[dD][89a-fA-F]"


def parse_lists(text: str, joined: str, is_list: str, event_field: Sequence[str]) -> str:
    """Return an SQL expression for the batches in a text, or NULL if the text is neither a JSON array nor a batch.

    `joined` is an SQL expression for the text with commas between several batches. `is_list` is true for batches.
    """
    keys = dict.fromkeys((*find_absent_keys(event_field), MESSAGE_TYPE, *BATCH_KEYS), "STRING")
    for wrapper in LISTS:
        keys[wrapper.items] = "STRING" if wrapper.expand else "ARRAY<STRING>"
        keys.update(dict.fromkeys(wrapper.server, "STRING"))
    keys |= _TYPES
    schema = ", ".join(f"`{key}`: {kind}" for key, kind in keys.items())
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt', 'allowSingleQuotes', 'false')"

    content = f"""
        CASE WHEN NOT is_done AND substr({text}, 1, 1) = '[' THEN concat('{{"items":', {text}, '}}') WHEN {is_list} THEN {joined} END
    """
    return f"from_json(concat('{{\"batches\":[', {content}, ']}}'), 'batches ARRAY<STRUCT<{schema}>>, corrupt STRING', {options})"


def find_absent_keys(event_field: Sequence[str]) -> list[str]:
    """Return keys that must be absent from a batch of records. If one is present, Python reads the batch."""
    fields = (wrapper.path[0] for wrapper in WRAPPED_IN_FIELD)
    return list(dict.fromkeys((*event_field[:1], *fields, *CONVERTED_KEYS, "stage")))


def list_records(batches: str, event_field: Sequence[str]) -> str:
    """Return an SQL expression for the records of batches: a list of structs with the fields `server` and `text`.

    The value is NULL if Python must read the batches.
    """
    conditions = [f"batch.`{key}` IS NULL" for key in find_absent_keys(event_field)]
    conditions += [
        f"NOT coalesce({is_ambiguous([name])} OR instr({name}, chr(1)) > 0, FALSE)"
        for name in (_access("batch", wrapper.server) for wrapper in LISTS if wrapper.server)
    ]
    several = " AND ".join(f"batch.`{key}` IS NOT NULL" for key in BATCH_KEYS)
    conditions.append(f"(size({batches}.batches) = 1 OR ({several}))")
    other = f"array(named_struct('server', {_NO_SERVER}, 'text', {quote(OTHER_RECORD)}))"
    lists = " ".join(f"WHEN batch.`{wrapper.items}` IS NOT NULL THEN {_expand(wrapper)}" for wrapper in LISTS)
    return f"""
        CASE WHEN {batches}.corrupt IS NULL THEN flatten(transform({batches}.batches, batch -> CASE WHEN NOT ({" AND ".join(conditions)})
            THEN NULL WHEN batch.`{MESSAGE_TYPE}` = {quote(CONTROL_MESSAGE)} THEN {other} {lists} END)) END
    """


def _expand(wrapper: Wrapper) -> str:
    """Return an SQL expression for the records of the batch `batch`, or NULL if Python must read the batch."""
    if wrapper.expand is None:
        server = f"nullif({_access('batch', wrapper.server)}, '')" if wrapper.server else _NO_SERVER
        return _make_records(f"batch.`{wrapper.items}`", server)
    if wrapper.items == "hits":
        return _require_records(_make_records(f"coalesce(batch.hits.hits, {_EMPTY})", _NO_SERVER))
    if wrapper.items == "resourceLogs":
        names = ", ".join(
            f"try_element_at(filter(resource.resource.attributes, attribute -> attribute.key = {quote(name)}), -1).value.stringValue"
            for name in OTLP_SERVERS
        )
        records = _make_records(f"coalesce(scope.logRecords, {_EMPTY})", f"nullif(coalesce({names}), '')")
        scopes = f"transform(resource.scopeLogs, scope -> {records})"
        return _require_records(f"flatten(transform(batch.resourceLogs, resource -> flatten({scopes})))")
    return "NULL"


def _make_records(texts: str, server: str) -> str:
    return f"transform({texts}, text -> named_struct('server', {server}, 'text', text))"


def _require_records(records: str) -> str:
    """Return an SQL expression that is NULL if there are no records, because Python then tries other wrappers."""
    return f"CASE WHEN size({records}) > 0 THEN {records} END"


def is_unicode(text: str) -> str:
    """Return an SQL condition that is true if a JSON text has no escapes of lone surrogates, which Python rejects."""
    return f"NOT regexp_like(regexp_replace({text}, {quote(_PAIR)}, ''), {quote(_SURROGATE)})"


def check_records(records: str, text: str) -> str:
    """Return an SQL condition that is true if all records are objects, and if Python reads them in the same way.

    `text` is an SQL expression for the text of the batches.
    """
    is_server = f"coalesce(NOT {is_ambiguous(['record.server'])} AND instr(record.server, chr(1)) = 0, TRUE)"
    keys = f"array_sort(array_distinct(json_object_keys({records}[0].text)))"
    is_row = f"substr({text}, 1, 1) = '[' AND size({records}) > 0 AND coalesce({keys} = array('field', 'value'), FALSE)"
    return f"""
        forall({records}, record -> coalesce(substr(record.text, 1, 1) = '{{', FALSE) AND {is_server})
            AND NOT regexp_like({text}, {quote(_TEXT_ITEM)}) AND (NOT contains({text}, '\\u') OR {is_unicode(text)}) AND NOT ({is_row})
    """


def _access(value: str, path: Sequence[str]) -> str:
    return ".".join([value, *(f"`{key}`" for key in path)])
