"""SQL that takes audit events out of their wrappers, for DuckDB and Spark. Python's reader is the reference.

SQL unwraps one event per line: a line with a prefix, or an object with the event in a field. For any other line, the
column `text` is NULL, and Python reads the line: batches, wrappers in wrappers, converted records, and ambiguous lines.
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
    """SQL expressions for one wrapper, on the columns `line` or `fields`."""

    text: str
    """The text of the event, or NULL if Python must read the line."""
    server: str
    """The name of the API server as a string in JSON, or NULL."""
    fields: Fields
    """The fields of the object that the expressions need. Empty if the event follows a prefix."""


def can_unwrap(wrapper: Wrapper) -> bool:
    """Return whether SQL can take events out of a wrapper."""
    return bool(wrapper.path) or (bool(wrapper.prefix) and not wrapper.suffix)


def make_unwrapping(wrapper: Wrapper, name: Callable[[str], str], json_type: str) -> Unwrapping:
    """Return the SQL for a wrapper.

    `name` quotes the name of a column. `json_type` is a column type that keeps JSON strings with their quotation marks.
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
    """Yield keys that must be absent from an object in this wrapper.

    If one is present, Python's reader chooses another wrapper.
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
