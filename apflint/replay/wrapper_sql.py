"""SQL for DuckDB and Spark that takes audit events out of their wrappers, such as fields of a log agent.

The SQL unwraps a line that has one event: the event follows a prefix, or it is in a field of an
object. For any other line, the column `text` is NULL, and Python reads the line. Examples are
batches of events, wrappers in wrappers, records that must be converted, and ambiguous lines.
The SQL must give the same events as Python's reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.sql_text import quote
from apflint.requests.log_wrappers import AUDIT_CATEGORIES, EVENT_KEYS, WRAPPED_IN_FIELD, Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Fields = dict[str, "str | Fields"]
"""Fields of an object: SQL types, or the fields of inner objects."""
_NULL = "CAST(NULL AS STRING)"


class Unwrapping(NamedTuple):
    """SQL expressions that take the event and the name of the server out of one wrapper.

    A wrapper is what a log collector writes around an event: a prefix, or an object with the event in a
    field. For a prefix, the expressions read the column `line`, else the columns in `fields`.
    """

    text: str
    """The text of the event, or NULL if Python must read the line."""
    server: str
    """The name of the API server as a string in JSON, or NULL."""
    fields: Fields
    """The fields of the object that the expressions need. Empty if the event follows a prefix."""


def can_unwrap(wrapper: Wrapper) -> bool:
    """Return whether SQL can extract audit events from lines in the format `wrapper`.

    The event must be in a field of a JSON object, or it must follow a prefix and end the line.
    """
    return bool(wrapper.path) or (bool(wrapper.prefix) and not wrapper.suffix)


def make_unwrapping(wrapper: Wrapper, name: Callable[[str], str], json_type: str) -> Unwrapping:
    """Return the SQL expressions that take an audit event and its API server out of `wrapper`.

    `name` is a function that quotes the name of a column. `json_type` is a column type that keeps JSON
    strings with their quotation marks.
    """
    if wrapper.prefix:
        # No prefix contains a brace, so the first brace begins the event. A line without a prefix may be an event, too.
        text = f"regexp_replace(line, {quote(f'^({wrapper.prefix})[{{]')}, '{{')"
        return Unwrapping(f"CASE WHEN substr({text}, 1, 1) = '{{' THEN {text} END", _NULL, {})
    fields: Fields = dict.fromkeys(_list_absent(wrapper), "STRING")
    conditions = [f"{name(key)} IS NULL" for key in fields]
    _add(fields, wrapper.path, "STRING")
    text = _access(wrapper.path, name)
    conditions.append(f"substr({text}, 1, 1) = '{{'")
    if wrapper.category:
        _add(fields, (wrapper.category,), "STRING")
        categories = ", ".join(map(quote, AUDIT_CATEGORIES))
        conditions.append(f"coalesce({name(wrapper.category)} IN ({categories}), TRUE)")
    server = _NULL
    if wrapper.server:
        _add(fields, wrapper.server, json_type)
        value = f"CAST({_access(wrapper.server, name)} AS STRING)"
        server = f"CASE WHEN substr({value}, 1, 1) = '\"' THEN {value} END"
    return Unwrapping(f"CASE WHEN {' AND '.join(conditions)} THEN {text} END", server, fields)


def _list_absent(wrapper: Wrapper) -> Iterator[str]:
    """Yield the top-level keys that a JSON object in the format of `wrapper` must not contain.

    If an object contains one of the keys, the Python reader treats the object as an event or recognizes
    a different wrapper.
    """
    yield from EVENT_KEYS
    at = WRAPPED_IN_FIELD.index(wrapper) if wrapper in WRAPPED_IN_FIELD else len(WRAPPED_IN_FIELD)
    roots = [other.path[0] for other in WRAPPED_IN_FIELD[:at]]
    # Omit keys that differ from the key of `wrapper` only in case, such as `MESSAGE` of journald and `message`, because
    # DuckDB cannot distinguish them. No record has both: all fields of a record of journald are uppercase.
    yield from (root for root in roots if root.lower() != wrapper.path[0].lower())


def _add(fields: Fields, path: tuple[str, ...], kind: str) -> None:
    *keys, last = path
    for key in keys:
        inner = fields.setdefault(key, {})
        assert isinstance(inner, dict), "an absent key cannot contain a value"
        fields = inner
    fields[last] = kind


def _access(path: tuple[str, ...], name: Callable[[str], str]) -> str:
    return ".".join(map(name, path))
