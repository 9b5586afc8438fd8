"""Spark SQL that takes audit events out of their wrappers.

Spark reads objects that apflint does not open, so the SQL recognizes the wrapper of each line, as Python's reader does. The SQL
removes one wrapper in each of several steps, and makes a row for each record of a list. The text of an event is NULL if Python must
read the line or the record: results of queries whose records are lists, converted records, and ambiguous values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.replay.reduction_sql import is_ambiguous
from apflint.replay.spark_lists import LISTS, OTHER_RECORD, check_records, find_absent_keys, list_records, parse_lists
from apflint.replay.sql_text import quote
from apflint.requests.log_wrappers import (
    AUDIT_CATEGORIES,
    CONTROL_MESSAGE,
    EVENT_KEYS,
    MESSAGE_TYPE,
    WRAPPED_IN_FIELD,
    WRAPPERS,
    Wrapper,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_Fields = dict[str, "_Fields | None"]
"""Fields of an object. None stands for a string, which Spark also returns for any other JSON value."""
_EVENT_START = '{"kind":"Event",'
"""The beginning of every event that kube-apiserver writes."""
_PREFIXES = "|".join(wrapper.prefix for wrapper in WRAPPERS if wrapper.prefix and not wrapper.suffix)
_STEPS, _STEPS_WITH_LISTS = 3, 2
"""Maximum number of nested wrappers that the SQL removes. Lists must be among the first. Python reads deeper events."""
SEPARATOR = "\x01"
OTHER_LINE = f"{SEPARATOR}{SEPARATOR}{OTHER_RECORD}"
"""Value of the column `line` for log records that contain no audit event."""
_SPACE = r"[ \t\r\n]"


def unwrap_lines(lines: str, event_field: Sequence[str] = ()) -> str:
    """Return a query with the columns `line`, `file`, `server` and `text` for each record, and each line without a list of records.

    `lines` is a relation with the columns `value`, which is the line, and `file`. Empty lines are left out. The server is
    NULL if the line does not contain its name. `event_field` are the keys of the event in a format that is not in the table
    of wrappers.

    The column `line` is what Python reads if Spark cannot. It has three parts with `SEPARATOR` between them. For a record of a list,
    they are the CRC-32 of the line, the name of the API server that the list states, and a JSON text with which Python's reader
    returns the same as with the record in its list. For any other line, the first two parts are empty.

    The query needs a session with case-sensitive names, because some fields of wrappers differ only in case.
    """
    relation = f"""
        SELECT value AS line, CAST(NULL AS BIGINT) AS checksum, file, CAST(NULL AS STRING) AS list_server, CAST(NULL AS STRING) AS server,
            value AS text, FALSE AS is_done, 0 AS depth
        FROM {lines} WHERE trim(translate(value, concat(chr(9), chr(13)), '')) <> ''
    """
    for step in range(_STEPS):
        relation = _remove_wrapper(relation, event_field, has_lists=step < _STEPS_WITH_LISTS)
    return f"""
        SELECT concat(coalesce(CAST(checksum AS STRING), ''), chr({ord(SEPARATOR)}), coalesce(list_server, ''), chr({ord(SEPARATOR)}), line) AS line,
            file, server, CASE WHEN substr(text, 1, 1) = '{{' THEN text END AS text
        FROM ({_strip_prefixes(relation)})
    """


def _remove_wrapper(relation: str, event_field: Sequence[str], *, has_lists: bool) -> str:
    """Return a query that removes the outermost wrapper of each row of a relation with the same columns.

    `text` is the text without the wrappers that were removed, `depth` is their number, and `is_done` is true for events,
    and for rows that Python must read.
    """
    columns = f"""
        CASE WHEN is_other THEN {quote(OTHER_RECORD)} ELSE line END AS line, CASE WHEN NOT is_other THEN checksum END AS checksum,
        file, CASE WHEN NOT is_other THEN list_server END AS list_server,
        CASE WHEN content IS NOT NULL OR batches IS NOT NULL THEN coalesce(own_server, server) END AS server,
        CASE WHEN NOT is_other THEN content END AS text,
        NOT is_unwrapped OR is_other OR content IS NULL AS is_done, depth + CAST(is_unwrapped AS INT) AS depth
    """
    decided = _decide(_parse_records(relation, event_field, has_lists=has_lists), event_field)
    if not has_lists:
        return f"SELECT {columns} FROM ({decided})"
    # If a log line contains a list, each record of the list becomes a row. So that the rows do not repeat the whole
    # line, `line` becomes the text of the record inside of its lists.
    wrapped = "concat(repeat('{\"items\":[', depth), record.text, repeat(']}', depth))"
    return f"""
        SELECT CASE WHEN record IS NULL THEN line ELSE {wrapped} END AS line, checksum, file,
            CASE WHEN record IS NULL THEN list_server ELSE coalesce(record.server, server) END AS list_server,
            coalesce(record.server, server) AS server, CASE WHEN record IS NULL THEN text ELSE record.text END AS text,
            record IS NULL AND is_done AS is_done, depth
        FROM (SELECT CASE WHEN records IS NULL THEN line END AS line,
                CASE WHEN records IS NOT NULL AND checksum IS NULL THEN crc32(line) ELSE checksum END AS checksum,
                file, list_server, server, CASE WHEN records IS NULL THEN text END AS text, is_done,
                CASE WHEN records IS NULL THEN depth ELSE depth + 1 END AS depth, records
            FROM (SELECT {columns}, CASE WHEN found IS NOT NULL THEN CASE WHEN {check_records("found", "text")} THEN found END END AS records FROM ({decided}))
            WHERE records IS NULL OR size(records) > 0)
        LATERAL VIEW OUTER explode(records) AS record
    """


def _parse_records(relation: str, event_field: Sequence[str], *, has_lists: bool) -> str:
    """Return a query that adds columns to a relation: the fields of the log record, and the records that a list contains.

    `parsed` is NULL if the text is an event as kube-apiserver writes it, or a list. `fields` is NULL if the text is not a
    log record. `batches` is NULL if the text is not a list, and `found` is NULL if Python must read the list.
    """
    chosen, wrappers = _choose_wrappers(event_field)
    schema = _make_schema((*chosen, *wrappers), event_field)
    is_object = "NOT is_done AND substr(text, 1, 1) = '{'"
    if not event_field:
        is_object += f" AND NOT startswith(text, {quote(_EVENT_START)})"
    batches = found = "CAST(NULL AS STRING)"
    if has_lists:
        is_list = _is_list(schema, [f"{_access(wrapper.path)} IS NOT NULL" for wrapper in chosen])
        batches = parse_lists("text", "joined", is_list, event_field)
        found = f"CASE WHEN batches IS NOT NULL THEN {list_records('batches', event_field)} END"
    return f"""
        SELECT *, {found} AS found FROM (SELECT *, {batches} AS batches
            FROM (SELECT *, CASE WHEN parsed.corrupt IS NULL AND size(parsed.batches) > 0 THEN parsed.batches[0] END AS fields
                FROM (SELECT *, CASE WHEN joined IS NOT NULL THEN {_parse("joined", schema)} END AS parsed
                    FROM (SELECT *, CASE WHEN {is_object} THEN {_JOINED} END AS joined FROM ({_strip_prefixes(relation)})))))
    """


def _decide(relation: str, event_field: Sequence[str]) -> str:
    """Return a query that adds columns to a relation of `_parse_records`: the content of each log record, and what it is.

    `content` is NULL for lists, for records that contain no event (`is_other`), and if Python must read the text.
    """
    chosen, wrappers = _choose_wrappers(event_field)
    is_event = f"({' OR '.join(f'{_access((key,))} IS NOT NULL' for key in EVENT_KEYS)})"
    conditions = [(f"{_access(wrapper.path)} IS NOT NULL", wrapper) for wrapper in (*chosen, *wrappers)]
    contents = [f"WHEN {condition} THEN {_find_content(wrapper)}" for condition, wrapper in conditions]
    servers = [f"WHEN {condition} THEN {_find_server(wrapper)}" for condition, wrapper in conditions]
    for branches, value in ((contents, "text"), (servers, "CAST(NULL AS STRING)")):
        branches.insert(len(chosen), f"WHEN {is_event} THEN {value}")
    is_other, is_wrapped = "FALSE", " OR ".join(condition for condition, _ in conditions)
    if not event_field:
        others = " ".join(f"WHEN {condition} THEN {_is_other(wrapper)}" for condition, wrapper in conditions)
        is_control = f"size(parsed.batches) = 1 AND {_access((MESSAGE_TYPE,))} = {quote(CONTROL_MESSAGE)}"
        is_other = f"CASE WHEN {is_event} THEN FALSE {others} ELSE {is_control} END"
        is_wrapped = f"({is_wrapped}) AND NOT {is_event}"
    return f"""
        SELECT *, coalesce(fields IS NOT NULL AND batches IS NULL AND {is_other}, FALSE) AS is_other,
            NOT is_done AND coalesce(fields IS NOT NULL AND batches IS NULL AND ({is_wrapped}), FALSE) AS is_unwrapped,
            CASE WHEN is_done THEN text WHEN batches IS NOT NULL OR substr(text, 1, 1) <> '{{' THEN NULL WHEN parsed IS NULL THEN text
                WHEN fields IS NOT NULL THEN CASE {" ".join(contents)} END END AS content,
            CASE WHEN fields IS NOT NULL AND batches IS NULL THEN CASE {" ".join(servers)} END END AS own_server
        FROM ({relation})
    """


def _choose_wrappers(event_field: Sequence[str]) -> tuple[tuple[Wrapper, ...], tuple[Wrapper, ...]]:
    """Return the wrapper of `--event-field`, and other wrappers that Spark removes: none with `--event-field`."""
    if event_field:
        return (Wrapper("--event-field", "", path=tuple(event_field)),), ()
    return (), WRAPPED_IN_FIELD


_JOINED = f"""
    CASE WHEN depth = 0 AND substr(line, 1, 1) = '{{' AND contains(text, '"{MESSAGE_TYPE}"')
        THEN regexp_replace(text, '[}}]{_SPACE}*[{{](?={_SPACE}*"[A-Za-z])', '}},{{') ELSE text END
"""
"""Batches that Amazon Data Firehose writes without line breaks between them, as items of a list.

In JSON, no other braces precede a quotation mark and a letter in this way: inside of a string, the quotation mark would end the string.
"""


def _strip_prefixes(relation: str) -> str:
    """Return a query that removes the prefix before the JSON object in the column `text` of a relation.

    The query sets `text` to NULL if `text` is neither a JSON object nor a JSON list.
    """
    # No prefix contains a brace, so the first brace begins the event.
    return f"""
        SELECT line, checksum, file, list_server, server, is_done, depth, CASE WHEN substr(text, 1, 1) = '{{' THEN text
            WHEN regexp_like(text, {quote(f"^({_PREFIXES})[{{]")}) THEN substr(text, instr(text, '{{'))
            WHEN substr(text, 1, 1) = '[' THEN text END AS text
        FROM ({relation})
    """


def _make_schema(wrappers: Sequence[Wrapper], event_field: Sequence[str]) -> _Fields:
    """Return the fields of a log record that the wrappers need, and that show whether the record contains a list."""
    schema: _Fields = {}
    for key in EVENT_KEYS:
        _add(schema, (key,))
    for wrapper in wrappers:
        for path in filter(None, (wrapper.path, wrapper.server, (wrapper.category,) if wrapper.category else ())):
            _add(schema, path)
    for key in (MESSAGE_TYPE, *find_absent_keys(event_field), *(wrapper.items for wrapper in LISTS)):
        schema.setdefault(key, None)
    return schema


def _parse(text: str, schema: _Fields) -> str:
    """Return an SQL expression for the fields of the objects in a text with commas between the objects."""
    inner = _define_type(schema)
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt', 'allowSingleQuotes', 'false')"
    return f"from_json(concat('{{\"batches\":[', {text}, ']}}'), 'batches ARRAY<{inner}>, corrupt STRING', {options})"


def _is_list(schema: _Fields, chosen: Sequence[str]) -> str:
    """Return an SQL condition for log records that may contain a list of records."""
    absent = [f"{_access((key,))} IS NULL" for key in find_absent_keys(())]
    absent += [f"NOT ({condition})" for condition in chosen]
    starts = [
        f"coalesce(substr({_access((wrapper.items,))}, 1, 1) IN ('[', '{{'), FALSE)"
        for wrapper in LISTS
        if schema[wrapper.items] is None
    ]
    return f"fields IS NOT NULL AND {' AND '.join(absent)} AND ({' OR '.join(starts)})"


def _find_content(wrapper: Wrapper) -> str:
    """Return an SQL expression for the audit event in a log record that has the format `wrapper`.

    The value is the text of the field that contains the event. The value is NULL if the category of the
    record is not that of audit events, or if the name of the server is ambiguous. In both cases, Python
    must read the line.
    """
    content = _access(wrapper.path)
    conditions = ["size(parsed.batches) = 1"]
    if wrapper.category:
        categories = ", ".join(map(quote, AUDIT_CATEGORIES))
        conditions.append(f"coalesce({_access((wrapper.category,))} IN ({categories}), TRUE)")
    if wrapper.server:  # Python must read the line if the name was not a JSON string: Spark converts numbers to strings
        server = _access(wrapper.server)
        conditions.append(f"NOT coalesce({is_ambiguous([server])} OR instr({server}, chr(1)) > 0, FALSE)")
    return f"CASE WHEN {' AND '.join(conditions)} THEN {content} END"


def _is_other(wrapper: Wrapper) -> str:
    """Return an SQL condition for records in a wrapper whose category shows that they contain no audit event."""
    if not wrapper.category:
        return "FALSE"
    content, categories = _access(wrapper.path), ", ".join(map(quote, AUDIT_CATEGORIES))
    is_text = f"(substr({content}, 1, 1) = '{{' OR NOT {is_ambiguous([content])})"
    return f"size(parsed.batches) = 1 AND {_access((wrapper.category,))} NOT IN ({categories}) AND {is_text}"


def _find_server(wrapper: Wrapper) -> str:
    return f"nullif({_access(wrapper.server)}, '')" if wrapper.server else "CAST(NULL AS STRING)"


def _add(fields: _Fields, path: Sequence[str]) -> None:
    """Add the string at `path` to the fields of an object. Missing parent objects are also added.

    `path` must neither extend a path that was added before, nor be the beginning of such a path.
    """
    *keys, last = path
    for key in keys:
        inner = fields.setdefault(key, {})
        assert inner is not None, "a string has no fields"
        fields = inner
    fields[last] = None


def _define_type(fields: _Fields | None) -> str:
    """Return the type of a field in Spark's SQL: `STRING` if `fields` is None, otherwise a `STRUCT` of `fields`."""
    if fields is None:
        return "STRING"
    return f"STRUCT<{', '.join(f'`{key}`: {_define_type(inner)}' for key, inner in fields.items())}>"


def _access(path: Sequence[str]) -> str:
    return ".".join(["fields", *(f"`{key}`" for key in path)])
