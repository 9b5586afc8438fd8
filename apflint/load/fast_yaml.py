"""The value of YAML that is written a line for each thing, which is how people and kustomize write it.

Mappings and lists by indentation, words, numbers, quotes without escapes, and lists in brackets on one line. For these
neither libyaml's events nor even the import of PyYAML is needed, which is a fifth of what a hook costs. Whatever else
there is, mistakes included, is left to `apflint.load.plain_yaml` and the tree: then the answer is None. A property test
holds the values equal to theirs.
"""

from __future__ import annotations

import re
from math import isfinite
from sys import intern
from typing import Any

from apflint.load.scalars import key, plain

DEEPEST = 100
_REMEMBERED = 1024  # lines: most of them come again in every document

_LONGEST = 1000  # characters of a line: what the pattern takes may grow with the square of them

_LETTERS = "A-Za-z0-9_./*@+=-"
_WORD = rf"[-+]?[A-Za-z0-9_./][{_LETTERS}]*"
_QUOTED = r'"[^"\\]*"|' + r"'[^']*'"
_ITEM = f"(?:{_QUOTED}|{_WORD})"
_LINE = re.compile(
    r"(?P<dashes>(?: *-(?= ))*) *"
    r"(?:(?P<key>[A-Za-z_][A-Za-z0-9_./-]{0,127}):(?: +|$))?"
    rf"(?:(?P<list>\[ *(?:{_ITEM}(?: *, *{_ITEM})* *)?\])|(?P<none>\{{\}})|(?P<quoted>{_QUOTED})"
    # A word may have colons in it, and others after a blank; neither `: ` nor ` #` is a part of it.
    rf"|(?P<words>{_WORD}(?:(?:[,()]|:(?=[{_LETTERS}])| (?=[A-Za-z0-9_./(]))[{_LETTERS}]*)*))?"
    r" *(?:(?:(?<= )|^)#.*)?"
)
_ITEMS = re.compile(_ITEM)

_Step = tuple[int, str | None]
"""A column, and the key there; None for the dash of a list item."""
_Line = tuple[tuple[_Step, ...], bool, Any]
"""The steps of a line from left to right, whether there is a value after them, and the value. No steps: nothing but a comment."""


class _OtherwiseError(Exception):
    """Text that is not written a line for each thing, or wrongly."""


def fast_value(text: str, max_values: int) -> dict[str, object] | list[object] | None:
    """Return the value of a text with one document, or None if the text needs its tree. Never raises.

    A document of more than `max_values` keys, scalars, lists and mappings needs it: the tree reports the limit.
    """
    if len(text) > max_values and _count_at_most(text) > max_values:  # a value takes a character at least
        return None
    try:
        return _value(text)
    except _OtherwiseError:
        return None


def _count_at_most(text: str) -> int:
    """Return an upper bound of the values of a document that is written a line for each thing.

    Each line has at most one key, each item follows a dash, a bracket or a comma, and the root is one more.
    """
    keys = text.count(": ") + text.count(":\n") + 1
    return 1 + 2 * keys + text.count("- ") + text.count("[") + text.count(",")


def _value(text: str) -> dict[str, Any] | list[Any] | None:
    """Follows the columns: a block is open as long as lines start at its column or right of it."""
    top: Any = {}
    column = -1
    waiting: str | None = ""  # the key of `top` whose value may come on the next line
    outer: list[tuple[Any, int]] = []
    holder = top
    lines = text.split("\n")
    if lines[0] == "---":
        del lines[0]
    for line in lines:
        steps, has_value, value = _KNOWN.get(line) or _remembered(line)
        if not steps:
            continue
        at, name = steps[0]
        if waiting is not None and (at > column or (at == column and name is None and top.__class__ is dict)):
            new: Any = [] if name is None else {}
            top[waiting] = new
            outer.append((top, column))
            top, column = new, at
        else:
            while column > at or (column == at and name is not None and top.__class__ is list):
                top, column = outer.pop()
            if column != at or (top.__class__ is list) != (name is None):
                raise _OtherwiseError
        for at, following in steps[1:]:
            new = [] if following is None else {}
            top.append(new)
            outer.append((top, column))
            top, column, name = new, at, following
        if len(outer) > DEEPEST:
            raise _OtherwiseError
        if value.__class__ is list or value.__class__ is dict:
            value = value.copy()
        waiting = None
        if name is None:
            top.append(value)
        elif name in top:
            raise _OtherwiseError
        else:
            top[name] = value
            if not has_value:
                waiting = name
    found = holder.get("")
    return found if isinstance(found, dict | list) else None


_KNOWN: dict[str, _Line] = {}


def _remembered(line: str) -> _Line:
    if len(_KNOWN) >= _REMEMBERED:
        _KNOWN.clear()
    _KNOWN[line] = found = _line(line)
    return found


def _line(line: str) -> _Line:
    # Whatever is printed is a character of YAML, and no end of a line.
    match = _LINE.fullmatch(line) if len(line) <= _LONGEST and line.isprintable() else None
    if match is None:
        raise _OtherwiseError
    dashes, name = match["dashes"], match["key"]
    steps: list[_Step] = [(at, None) for at, letter in enumerate(dashes) if letter == "-"]
    has_value = match.lastgroup not in ("dashes", "key")
    if name is not None:
        if key(name).__class__ is not str:
            raise _OtherwiseError
        steps.append((match.start("key"), intern(name)))
    elif has_value != bool(steps):
        raise _OtherwiseError  # a value on its own, or a dash without one
    return tuple(steps), has_value, _scalar_or_list(match)


def _scalar_or_list(match: re.Match[str]) -> Any:
    if (listed := match["list"]) is not None:
        return [_item(item) for item in _ITEMS.findall(listed)]
    if match["none"] is not None:
        return {}
    written = match["quoted"] or match["words"]
    return None if written is None else _item(written)


def _item(written: str) -> Any:
    """A scalar as it is written, in quotes or not."""
    value = written[1:-1] if written[0] in "\"'" else plain(written)
    if value.__class__ is str:
        return intern(value)
    if value.__class__ is float and not isfinite(value):
        raise _OtherwiseError
    return value
