"""Parses JSON (RFC 8259) to the same trees as YAML.

Unlike in YAML, `5.0` is not an integer, and `yes` is invalid. As in kubectl, several values in a text are several
documents.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, JSONDecoder, scanstring  # type: ignore[attr-defined]  # not in its stubs
from math import isfinite
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_DEPTH, MAX_DOCUMENT_CHARACTERS, MAX_DOCUMENTS, MAX_VALUES
from apflint.load.tree import Mapping, Node, ParsedDocument, ParseError, Scalar, Sequence
from apflint.load.yaml import too_many_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SPACES = " \t\n\r"
_PLAIN = r'"([^"\\\x00-\x1f\ud800-\udfff]*+)"'
"""Pattern for a string without escapes."""
_PLAIN_STRING = re.compile(_PLAIN)
_PLAIN_KEY = re.compile(f"{_PLAIN}[{_SPACES}]*+:[{_SPACES}]*+")
_COMMA = re.compile(rf"[{_SPACES}]*+,[{_SPACES}]*+(?![]}}])")
_SPACE = re.compile(f"[{_SPACES}]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LITERAL = re.compile(r"true|false|null")
_LITERALS = {"true": True, "false": False, "null": None}
_BOUNDARY = re.compile(r"\}\s*\n(?=\{)")
_SPECIAL = re.compile(r"(?<![0-9])[0-9]{400}|\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_PIECE_CHARACTERS = 16 * 1024
_SMALL_CHARACTERS = int(min(MAX_DEPTH, MAX_VALUES))
"""Maximum length in characters of a value for which the bounds need not be checked.

Each nested value has at least one character.
"""
_MAX_DIGITS = 400  # a number with more digits exceeds the range of floats, and Go rejects it


def parse_documents(
    text: str, is_wanted: Callable[[int, int, object], bool] = lambda _start, _end, _value: True
) -> Iterator[ParsedDocument]:
    """Yield the documents in a text for which `is_wanted(start, end, value)` is true. Never raises an exception.

    If a value is invalid, the next document starts at the next line that begins with `{` after a line that ends with
    `}`. Such a line never occurs inside a valid value, and nearly every value starts with such a line. Most documents
    have a value but no tree (see `_decode`).
    """
    at, documents_left = _skip_space(text, 0), int(MAX_DOCUMENTS)
    while at < len(text):
        # For each error, Python's decoder counts all lines before the error. For a million errors in one long text,
        # this would take hours. So the text is decoded in short pieces.
        stop = _find_boundary(text, at + _PIECE_CHARACTERS)
        piece, base = text[at:stop], at
        while at < stop:
            if documents_left == 0:
                yield from too_many_documents(text, at, is_wanted)
                return
            documents_left -= 1
            value, length = _scan(piece, at - base)
            end = base + length if length else _find_boundary(text, at)
            if is_wanted(at, end, value):
                decoded = None if value is None else _decode(piece, at - base)
                document = _read_document(text, at, end, decoded)
                end = document.end
                yield document
            at = _skip_space(text, end)


def parse_tree(text: str, start: int, end: int) -> Node:
    """Return the tree of the value that starts at `start` and ends at or before `end`.

    Raises ParseError for an invalid value.
    """
    root = _JsonTreeBuilder(text, end).build(start, 0)
    if end - start > MAX_DOCUMENT_CHARACTERS:
        raise ParseError(f"more than {MAX_DOCUMENT_CHARACTERS:,} characters in one document", start, limit="apflint")
    return root


def _find_boundary(text: str, at: int) -> int:
    """Return the start of the next line that begins with `{` after a line that ends with `}`, or the end of the text.

    The search starts at the offset `at`.
    """
    match = _BOUNDARY.search(text, at)
    return match.end() if match else len(text)


def _skip_space(text: str, at: int) -> int:
    if text[at : at + 1] not in _SPACES:
        return at
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _read_document(text: str, start: int, stop: int, value: Any) -> ParsedDocument:
    """Return the document in `text[start:stop]`.

    `value` is its decoded value, or None if the document is not decoded yet. If `value` is None, parse
    the text. The document then contains the tree or, if the text is invalid, the error.
    """
    try:
        root = parse_tree(text, start, stop) if value is None else None
    except ParseError as error:
        return ParsedDocument(start, stop, None, error)
    return ParsedDocument(start, root.end if root else stop, root, None, value)


def _scan(text: str, at: int) -> tuple[Any, int]:
    """Return (value at the offset `at`, end offset of the value), read with Python's fast but inexact decoder.

    Return (None, 0) if the value is invalid, or longer than `MAX_DOCUMENT_CHARACTERS`. The value can
    differ from the value that Kubernetes reads, but it is exact enough to show that an object is not an
    APF object. `_decode` returns exact values, but takes twice as long.
    """
    if len(text) - at > MAX_DOCUMENT_CHARACTERS and _find_boundary(text, at) - at > MAX_DOCUMENT_CHARACTERS:
        return None, 0
    try:
        value, end = _SCAN(text, at)
    except (ValueError, StopIteration, RecursionError):
        return None, 0
    return value, end


def _decode(text: str, at: int) -> Any:
    """Return the value at an offset with Python's JSON decoder, or None if only `parse_tree` reads the value correctly.

    Only `parse_tree` handles duplicate keys, NaN, infinite numbers, unpaired surrogates and deep nesting like Go. However,
    Python's decoder is 50 times as fast.
    """
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    if _SPECIAL.search(text, at, end) or not (end - at <= _SMALL_CHARACTERS or _is_within_bounds(value)):
        return None
    return value


def _decode_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate keys")
    return value


def _decode_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("infinite number")
    return value


def _decode_constant(text: str) -> None:
    raise ValueError(text)


_SCAN = JSONDecoder().scan_once  # type: ignore[attr-defined]  # not in its stubs
_DECODER = JSONDecoder(object_pairs_hook=_decode_object, parse_float=_decode_float, parse_constant=_decode_constant)


def _is_within_bounds(value: Any) -> bool:
    """Return whether a value is within `MAX_VALUES` and `MAX_DEPTH`."""
    values_left: int = MAX_VALUES
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        values_left -= sum(2 * len(part) if part.__class__ is dict else len(part) for part in level)
        if not level or values_left < 0:
            break
        level = [
            item
            for part in level
            for item in (part.values() if part.__class__ is dict else part)
            if item.__class__ is dict or item.__class__ is list
        ]
    return not level and values_left >= 0


class _JsonTreeBuilder:
    def __init__(self, text: str, stop: int) -> None:
        self.text = text
        self.stop = stop
        self.values_left: int = MAX_VALUES

    def build(self, at: int, depth: int) -> Node:
        self.values_left -= 1
        if depth > MAX_DEPTH:
            raise ParseError(f"nested more than {MAX_DEPTH} levels deep", at, limit="apflint")
        if self.values_left < 0:
            raise ParseError(f"more than {MAX_VALUES:,} values in one document", at, limit="apflint")
        if plain := _PLAIN_STRING.match(self.text, at, self.stop):
            return Scalar(at, plain.end(), plain[1])
        first = self.text[at : at + 1]
        if first == '"':
            return self._string(at)
        if first == "{":
            return self._collection(Mapping(at, flow=True), depth)
        if first == "[":
            return self._collection(Sequence(at, flow=True), depth)
        if number := _NUMBER.match(self.text, at):
            return Scalar(at, number.end(), _number(number))
        if literal := _LITERAL.match(self.text, at):
            return Scalar(at, literal.end(), _LITERALS[literal.group()])
        raise ParseError("expected a JSON value", at)

    def _string(self, at: int) -> Scalar:
        literal = _STRING.match(self.text, at, self.stop)
        try:
            value, length = scanstring(literal.group() if literal else self.text[at : self.stop], 1, True)
        except JSONDecodeError as error:
            raise ParseError(error.msg[0].lower() + error.msg[1:], at + error.pos) from error
        # Like Go's encoding/json, replace each unpaired surrogate by U+FFFD.
        return Scalar(at, at + length, value if value.isascii() else _SURROGATE.sub("\ufffd", value))

    def _collection(self, node: Mapping | Sequence, depth: int) -> Node:
        """Parse the JSON object or array that starts at `node.start`. Add its entries to `node`, and return `node`."""
        text, stop = self.text, self.stop
        closing = "}" if isinstance(node, Mapping) else "]"
        at = _skip_space(text, node.start + 1)
        while text[at : at + 1] != closing:
            if isinstance(node, Mapping):
                key, at = self._key(at)
                last = self.build(at, depth + 1)
                node.pairs.append((key, last))
            else:
                last = self.build(at, depth + 1)
                node.items.append(last)
            comma = _COMMA.match(text, last.end, stop)
            at = comma.end() if comma else self._next(node, _skip_space(text, last.end), closing)
        node.end = at + 1
        return node

    def _key(self, at: int) -> tuple[Scalar, int]:
        """Return the key at an offset, and the offset of its value."""
        self.values_left -= 1
        if plain := _PLAIN_KEY.match(self.text, at, self.stop):
            return Scalar(at, plain.end(1) + 1, plain[1]), plain.end()
        if self.text[at : at + 1] != '"':
            raise ParseError("expected a key in double quotes", at)
        key = self._string(at)
        colon = _skip_space(self.text, key.end)
        if self.text[colon : colon + 1] != ":":
            raise ParseError("expected `:` after the key", colon)
        return key, _skip_space(self.text, colon + 1)

    def _next(self, node: Mapping | Sequence, at: int, closing: str) -> int:
        """Return the offset of the next entry, after a comma, or the offset of the closing bracket."""
        text = self.text
        character = text[at : at + 1]
        if character == closing:
            return at
        if at >= self.stop:
            raise ParseError(f"this `{text[node.start]}` is not closed: its `{closing}` is missing", node.start)
        if character != ",":
            raise ParseError(f"expected `,` or `{closing}`", at)
        after = _skip_space(text, at + 1)
        if text[after : after + 1] == closing:
            raise ParseError("JSON allows no comma after the last entry", at)
        return after


def _number(match: re.Match[str]) -> int | float:
    text = match.group()
    if len(text) > _MAX_DIGITS:
        raise ParseError(f"a number of more than {_MAX_DIGITS} digits", match.start(), match.end())
    return float(text) if match[1] or match[2] else int(text)
