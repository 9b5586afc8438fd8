"""Spark SQL that takes audit events out of their wrappers.

Spark reads objects that apflint does not open, so the SQL recognizes the wrapper of each line, as Python's reader does. The text
of an event is NULL if Python must read the line: lists of records, wrappers in wrappers, and converted records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.replay.reduction_sql import is_ambiguous
from apflint.replay.sql_text import quote
from apflint.requests.log_wrappers import AUDIT_CATEGORIES, EVENT_KEYS, WRAPPED_IN_FIELD, WRAPPERS, Wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

_Fields = dict[str, "_Fields | None"]
"""Fields of an object. None stands for a string, which Spark also returns for any other JSON value."""
_EVENT_START = '{"kind":"Event",'
"""The beginning of every event that kube-apiserver writes."""
_PREFIXES = "|".join(wrapper.prefix for wrapper in WRAPPERS if wrapper.prefix and not wrapper.suffix)


def unwrap_lines(lines: str, event_field: Sequence[str] = ()) -> str:
    """Return a query with the columns `value`, `file`, `server` and `text` for each line that is not empty.

    `lines` is a relation with the columns `value`, which is the line, and `file`. The server is NULL if the line does not contain
    its name. `event_field` are the keys of the event in a format that is not in the table of wrappers.

    The query needs a session with case-sensitive names, because some fields of wrappers differ only in case.
    """
    chosen = (Wrapper("--event-field", "", path=tuple(event_field)),) if event_field else ()
    wrappers = chosen or WRAPPED_IN_FIELD  # with --event-field, Python reads events in all other wrappers
    conditions = [(f"{_access(wrapper.path)} IS NOT NULL", wrapper) for wrapper in wrappers]
    is_event = " OR ".join(f"{_access((key,))} IS NOT NULL" for key in EVENT_KEYS)
    contents = [f"WHEN {condition} THEN {_find_content(wrapper)}" for condition, wrapper in conditions]
    contents.insert(len(chosen), f"WHEN {is_event} THEN value")
    servers = [f"WHEN {condition} THEN {_find_server(wrapper)}" for condition, wrapper in conditions]
    is_record = "substr(value, 1, 1) = '{'"
    if not event_field:
        is_record += f" AND NOT startswith(value, {quote(_EVENT_START)})"
    # No prefix contains a brace, so the first brace begins the event.
    return f"""
        SELECT value, file, server, CASE WHEN substr(content, 1, 1) = '{{' THEN content
            WHEN regexp_like(content, {quote(f"^({_PREFIXES})[{{]")}) THEN substr(content, instr(content, '{{')) END AS text
        FROM (SELECT value, file, CASE WHEN {is_event} THEN NULL {" ".join(servers)} END AS server,
                CASE WHEN fields IS NULL THEN value WHEN fields.corrupt IS NULL THEN CASE {" ".join(contents)} END END AS content
            FROM (SELECT value, file, CASE WHEN {is_record} THEN {_parse(wrappers)} END AS fields FROM {lines}
                WHERE trim(translate(value, concat(chr(9), chr(13)), '')) <> ''))
    """


def _parse(wrappers: Sequence[Wrapper]) -> str:
    """Return an SQL expression for the fields of a log record that the wrappers need."""
    schema: _Fields = {}
    for key in EVENT_KEYS:
        _add(schema, (key,))
    for wrapper in wrappers:
        for path in filter(None, (wrapper.path, wrapper.server, (wrapper.category,) if wrapper.category else ())):
            _add(schema, path)
    columns = ", ".join(f"`{key}` {_define_type(inner)}" for key, inner in schema.items())
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt', 'allowSingleQuotes', 'false')"
    return f"from_json(value, '{columns}, corrupt STRING', {options})"


def _find_content(wrapper: Wrapper) -> str:
    """Return an SQL expression for the string in the event field of a wrapper.

    The value is NULL if Python must read the line.
    """
    content = _access(wrapper.path)
    conditions = []
    if wrapper.category:
        categories = ", ".join(map(quote, AUDIT_CATEGORIES))
        conditions.append(f"coalesce({_access((wrapper.category,))} IN ({categories}), TRUE)")
    if wrapper.server:  # Spark converts a name that is not a JSON string, such as a number, to a string
        server = _access(wrapper.server)
        conditions.append(f"NOT coalesce({is_ambiguous([server])} OR instr({server}, chr(1)) > 0, FALSE)")
    return f"CASE WHEN {' AND '.join(conditions)} THEN {content} END" if conditions else content


def _find_server(wrapper: Wrapper) -> str:
    return f"nullif({_access(wrapper.server)}, '')" if wrapper.server else "CAST(NULL AS STRING)"


def _add(fields: _Fields, path: Sequence[str]) -> None:
    """Add a path to the fields of an object. No path is the beginning of another path."""
    *keys, last = path
    for key in keys:
        inner = fields.setdefault(key, {})
        assert inner is not None, "a string has no fields"
        fields = inner
    fields[last] = None


def _define_type(fields: _Fields | None) -> str:
    """Return the type of a field in Spark's SQL."""
    if fields is None:
        return "STRING"
    return f"STRUCT<{', '.join(f'`{key}`: {_define_type(inner)}' for key, inner in fields.items())}>"


def _access(path: Sequence[str]) -> str:
    return ".".join(["fields", *(f"`{key}`" for key in path)])
