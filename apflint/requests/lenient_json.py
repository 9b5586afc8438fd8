"""A parser for log lines that the module `json` rejects, but DuckDB's JSON reader accepts.

The Python and DuckDB engines must read the same events from a log. So this parser accepts what DuckDB accepts:
deeply nested objects, which kube-apiserver writes, and trailing commas, `nan`, `inf` and form feeds around an event,
which kube-apiserver never writes.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs omit it
from math import inf, nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SPACES = " \t\r\n\f\v"
"""Characters that DuckDB ignores before and after a value. Inside of a value, DuckDB ignores only the first four."""
_KEPT_DEPTH = 100
"""Maximum depth of the values to keep.

Deeper values are only validated. No field of an event, with all wrappers, is deeper.
"""
_MAX_DIGITS = 1000
_skip_spaces = re.compile(r"[ \t\r\n]*").match
_find_scalar = re.compile(
    r"(?P<word>true|false|null|-?(?i:nan|inf(?:inity)?))|-?(?P<digits>0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)",
    re.ASCII,
).match
_WORDS = {"true": True, "false": False, "null": None, "nan": nan, "-nan": nan}
_CLOSING: dict[type, str] = {dict: "}", list: "]"}
_DEVIATIONS = frozenset("}],nNiI-\f\v")
"""Characters at which `json` reports an error, but which this parser may accept."""


def may_be_lenient(error: ValueError | RecursionError, text: str) -> bool:
    """Return whether `parse_leniently` may accept a text for which `json` raised an error."""
    if isinstance(error, json.JSONDecodeError):
        return text[error.pos : error.pos + 1] in _DEVIATIONS
    return isinstance(error, RecursionError)


def parse_leniently(text: str) -> object:
    """Return the value of a text that may be nested deeply, and have trailing commas, `nan`, `inf`, and form feeds around it.

    Raises ValueError for any other text that is not JSON, and for escapes of lone surrogates.
    """
    text = text.strip(SPACES)
    root: list[Any] = []
    stack: list[Any] = [root]
    at, end = 0, len(text)
    while True:
        container = stack[-1]
        if len(stack) > 1 and text[at : at + 1] == _CLOSING[type(container)]:
            stack.pop()  # the bracket closes an empty container, or follows a comma
            at += 1
        else:
            keep, at = _find_place(container, text, at)
            value, at = _read_start(text, at)
            if len(stack) <= _KEPT_DEPTH:
                keep(value)
            if type(value) in _CLOSING:
                stack.append(value)
                at = _skip(text, at)
                continue
        at = _skip(text, at)
        while len(stack) > 1 and text[at : at + 1] == _CLOSING[type(stack[-1])]:
            stack.pop()
            at = _skip(text, at + 1)
        if len(stack) == 1:
            break
        at = _skip(text, _expect(",", text, at))
    if at != end:
        raise json.JSONDecodeError("Extra data", text, at)
    return root[0]


def _find_place(container: Any, text: str, at: int) -> tuple[Callable[[object], None], int]:
    """Return (function that adds the next value to the container, position in `text` at which this value starts)."""
    if type(container) is list:
        return container.append, at
    key, at = _read_string(text, _expect('"', text, at))
    at = _skip(text, _expect(":", text, _skip(text, at)))
    return lambda value: container.__setitem__(key, value), at


def _read_start(text: str, at: int) -> tuple[object, int]:
    """Return (value, position after the value) for the string, number or constant at the position `at`.

    For an opening bracket, return an empty dict or list, and the position after the bracket.
    """
    character = text[at : at + 1]
    if character == "{":
        return {}, at + 1
    if character == "[":
        return [], at + 1
    if character == '"':
        return _read_string(text, at + 1)
    match = _find_scalar(text, at)
    if match is None:
        raise json.JSONDecodeError("Expecting value", text, at)
    word = match["word"]
    if word is not None:
        return _WORDS[word.lower()] if word.lower() in _WORDS else float(word), match.end()
    if match["fraction"]:
        return float(match[0]), match.end()
    return int(match[0]) if len(match["digits"]) < _MAX_DIGITS else inf, match.end()


def _read_string(text: str, at: int) -> tuple[str, int]:
    value, end = scanstring(text, at, True)  # `scanstring` accepts only positional arguments
    if text.find("\\", at, end) >= 0:
        value.encode()  # only an escape can be a lone surrogate, for which `encode` raises a ValueError
    return value, end


def _expect(character: str, text: str, at: int) -> int:
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"Expecting {character!r}", text, at)
    return at + 1


def _skip(text: str, at: int) -> int:
    match = _skip_spaces(text, at)
    return match.end() if match else at
