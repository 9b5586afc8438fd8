"""A fast parser for common YAML: block style, line by line, without importing libyaml.

The parser supports indented mappings and lists, plain words, numbers, quoted strings without escapes, and flow lists on
one line. For any other text, the parser returns None, and `apflint.load.yaml` parses the text. A property test compares
the results of both parsers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite
from sys import intern
from typing import Any

from apflint.load.scalars import resolve_key, resolve_plain

MAX_FAST_DEPTH = 100
_MAX_LINE_LENGTH = 1000  # limits the time for a line, which may grow with the square of its length

_LETTERS = "A-Za-z0-9_./*@+=-"
_WORD = rf"[-+]?[A-Za-z0-9_./][{_LETTERS}]*"
_QUOTED = r'"[^"\\]*"|' + r"'[^']*'"
_ITEM = f"(?:{_QUOTED}|{_WORD})"
_LINE = re.compile(
    r"(?P<dashes>(?: *-(?= ))*) *"
    r"(?:(?P<key>[A-Za-z_][A-Za-z0-9_./-]{0,127}):(?: +|$))?"
    rf"(?:(?P<list>\[ *(?:{_ITEM}(?: *, *{_ITEM})* *)?\])|(?P<empty>\{{\}})|(?P<quoted>{_QUOTED})"
    # Words may contain colons and spaces, but neither `: ` nor ` #`.
    rf"|(?P<words>{_WORD}(?:(?:[,()]|:(?=[{_LETTERS}])| (?=[A-Za-z0-9_./(]))[{_LETTERS}]*)*))?"
    r" *(?:(?:(?<= )|^)#.*)?"
)
_ITEMS = re.compile(_ITEM)

_Step = tuple[int, str | None]
"""A column, and the key that starts there. The key is None for the dash of a list item."""
_Line = tuple[int, str | None, tuple[_Step, ...], bool, Any]
"""The first step of a line, its further steps from left to right, whether a value follows, and the value.

The column of an empty line or comment is `_NO_COLUMN`.
"""
_NO_COLUMN = -1


class _UnsupportedError(Exception):
    """Raised for YAML that this parser does not support, and for syntax errors."""


def fast_value(text: str, max_values: int) -> dict[str, object] | list[object] | None:
    """Return the value of a text with one document, or None if this parser does not support the text. Never raises.

    Also return None if the document may have more than `max_values` keys, scalars, lists and mappings.
    `apflint.load.yaml` then parses the text, and reports the document if it really has too many values.
    """
    # Each value has at least one character, so `max_values` characters never have too many values.
    if len(text) > max_values and _count_at_most(text) > max_values:
        return None
    try:
        return _read(text)
    except _UnsupportedError:
        return None


def _count_at_most(text: str) -> int:
    """Return an upper bound for the number of keys and values in a document in block style.

    The bound assumes one key for each line, one list item for each dash, bracket and comma, and one root value.
    """
    keys = text.count(": ") + text.count(":\n") + 1
    return 1 + 2 * keys + text.count("- ") + text.count("[") + text.count(",")


def _read(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the mapping or list in a YAML document, or None if the document is empty.

    A nested mapping or list ends before the first line that is indented less. Raises _UnsupportedError
    for YAML that this parser does not support.
    """
    root: Any = {}
    top: Any = root
    column = -1
    key_without_value: str | None = ""  # key of `top` whose value may begin on the next line
    outer: list[tuple[Any, int]] = []
    lines = text.split("\n")
    if lines[0] == "---":
        del lines[0]
    for line in lines:
        at, key, more_steps, has_value, value = _parse(line)
        if at == _NO_COLUMN:
            continue
        if key_without_value is not None and (at > column or (at == column and key is None and top.__class__ is dict)):
            block: Any = [] if key is None else {}
            top[key_without_value] = block
            outer.append((top, column))
            top, column = block, at
        else:
            while column > at or (column == at and key is not None and top.__class__ is list):
                top, column = outer.pop()
            if column != at or (top.__class__ is list) != (key is None):
                raise _UnsupportedError
        for at, next_key in more_steps:
            block = [] if next_key is None else {}
            top.append(block)
            outer.append((top, column))
            top, column, key = block, at, next_key
        if len(outer) > MAX_FAST_DEPTH:
            raise _UnsupportedError
        if value.__class__ is list or value.__class__ is dict:
            value = value.copy()  # the cached value is shared by equal lines, so return a copy
        key_without_value = None
        if key is None:
            top.append(value)
        elif key in top:
            raise _UnsupportedError
        else:
            top[key] = value
            if not has_value:
                key_without_value = key
    document = root.get("")
    return document if isinstance(document, dict | list) else None


@lru_cache(maxsize=1024)  # the results are cached, because most lines occur in many documents
def _parse(line: str) -> _Line:
    # All printable characters are valid in YAML, and no printable character ends a line.
    match = _LINE.fullmatch(line) if len(line) <= _MAX_LINE_LENGTH and line.isprintable() else None
    if match is None:
        raise _UnsupportedError
    dashes, key, items, empty, quoted, words = match.groups()
    steps: list[_Step] = [(at, None) for at, letter in enumerate(dashes) if letter == "-"] if dashes else []
    has_value, value = True, None
    if words is not None:
        value = _parse_word(words)
    elif quoted is not None:
        value = intern(quoted[1:-1])
    elif items is not None:
        value = [intern(item[1:-1]) if item[0] in "\"'" else _parse_word(item) for item in _ITEMS.findall(items)]
    elif empty is not None:
        value = {}
    else:
        has_value = False
    if key is not None:
        if resolve_key(key).__class__ is not str:
            raise _UnsupportedError
        steps.append((match.start("key"), intern(key)))
    elif has_value != bool(steps):
        raise _UnsupportedError  # a value without key and dash, or a dash without value
    if not steps:
        return _NO_COLUMN, None, (), False, None
    at, first_key = steps[0]
    return at, first_key, tuple(steps[1:]), has_value, value


def _parse_word(written: str) -> Any:
    """Return the value of a scalar without quotes."""
    value = resolve_plain(written)
    if value.__class__ is str:
        return intern(value)
    if value.__class__ is float and not isfinite(value):
        raise _UnsupportedError
    return value
