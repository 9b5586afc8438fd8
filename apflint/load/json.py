"""JSON text to the same trees as YAML, by JSON's own rules (RFC 8259): `5.0` is no integer here, `yes` is nothing at all.

Several values one after the other are several documents, as kubectl reads them.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, JSONDecoder, scanstring  # type: ignore[attr-defined]  # not in its stubs
from math import isfinite
from typing import TYPE_CHECKING, Any

from apflint.load.tree import Mapping, Node, Scalar, Sequence
from apflint.load.yaml import MAX_DEPTH, MAX_DOCUMENTS, MAX_LENGTH, MAX_VALUES, YamlDocument, YamlError, too_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BLANKS = " \t\n\r"
_SPACE = re.compile(f"[{_BLANKS}]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_HALF = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"true|false|null")
_WORDS = {"true": True, "false": False, "null": None}
_BOUNDARY = re.compile(r"\}\s*\n(?=\{)")
_SPECIAL = re.compile(r"(?<![0-9])[0-9]{400}|\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_PIECE = 16 * 1024
_MAX_DIGITS = 400  # longer numbers overflow a float as well; Go refuses them


def documents(
    text: str, wanted: Callable[[int, int, object], bool] = lambda _start, _end, _value: True
) -> Iterator[YamlDocument]:
    """The values in the text, each as a document, but for those that are not `wanted` by their start, end and value.

    What cannot be read ends where a line that begins with `{` follows a `}`: within a value that is never so, and between
    values nearly always. A plain value comes without a tree. Never raises.
    """
    at, left = _space(text, 0), MAX_DOCUMENTS
    while at < len(text):
        # A piece at a time, because an error of Python's decoder counts the lines before it: in a text of a million
        # mistakes that would take for ever.
        stop = _boundary(text, at + _PIECE)
        piece, base = text[at:stop], at
        while at < stop:
            if left == 0:
                yield from too_many(text, at, wanted)
                return
            left -= 1
            value, length = _scan(piece, at - base)
            end = base + length if length else _boundary(text, at)
            if wanted(at, end, value):
                made = _document(text, at, end, None if value is None else _plain_value(piece, at - base))
                end = made.end
                yield made
            at = _space(text, end)


def _boundary(text: str, at: int) -> int:
    """Where the next line begins with `{` after a `}`; the end of the text where none does."""
    found = _BOUNDARY.search(text, at)
    return found.end() if found else len(text)


def _scan(piece: str, at: int) -> tuple[Any, int]:
    """The value that starts there and its end; None and 0 where it cannot be read or is too long."""
    if len(piece) - at > MAX_LENGTH and _boundary(piece, at) - at > MAX_LENGTH:
        return None, 0
    try:
        value, end = _SCAN(piece, at)
    except (ValueError, StopIteration, RecursionError):
        return None, 0
    return value, end


def _document(text: str, start: int, stop: int, plain: Any) -> YamlDocument:
    """The value that starts there: itself where it is plain, else as a tree or an error."""
    if plain is not None:
        return YamlDocument(start, stop, None, None, plain)
    try:
        root = compose(text, start, stop)
    except YamlError as error:
        return YamlDocument(start, stop, None, error)
    return YamlDocument(start, root.end, root)


class _SpecialError(ValueError):
    pass


def _plain_value(text: str, start: int) -> Any:
    """The value that starts there if there is nothing in it that asks for a tree; else None.

    Python's own decoder is fifty times as fast as ours. What it reads otherwise than Go, or does not tell (keys that are
    there twice, NaN, numbers beyond all bounds, half of a surrogate pair, deep nesting), is left to the tree.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return None if _SPECIAL.search(text, start, end) or not _is_small(value) else value


def _is_small(value: Any) -> bool:
    """Whether a value is within the limits on nesting and on the number of values."""
    left = MAX_VALUES
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        left -= sum(2 * len(part) if part.__class__ is dict else len(part) for part in level)
        if not level or left < 0:
            break
        level = [
            item
            for part in level
            for item in (part.values() if part.__class__ is dict else part)
            if item.__class__ is dict or item.__class__ is list
        ]
    return not level and left >= 0


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _SpecialError
    return found


def _finite(text: str) -> float:
    if not isfinite(value := float(text)):
        raise _SpecialError
    return value


def _no_constant(_: str) -> Any:
    raise _SpecialError


def compose(text: str, start: int, end: int) -> Node:
    """The tree of the value that starts at `start`; it ends where it ends, at `end` at the latest. Raises YamlError."""
    root = _Reader(text, end).value(start, 0)
    if end - start > MAX_LENGTH:
        raise YamlError(f"a document of more than {MAX_LENGTH:,} characters", start, limit="apflint")
    return root


_SCAN = JSONDecoder().scan_once  # type: ignore[attr-defined]  # not in its stubs
_DECODER = JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant)


def _space(text: str, at: int) -> int:
    """Past the blanks and line ends there, if any."""
    if text[at : at + 1] not in _BLANKS:
        return at
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


class _Reader:
    def __init__(self, text: str, stop: int) -> None:
        self.text = text
        self.stop = stop
        self.left = MAX_VALUES

    def value(self, at: int, depth: int) -> Node:
        self.left -= 1
        if depth > MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep", at, limit="apflint")
        if self.left < 0:
            raise YamlError(f"more than {MAX_VALUES:,} values in one document", at, limit="apflint")
        first = self.text[at : at + 1]
        if first == '"':
            return self._string(at)
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if number := _NUMBER.match(self.text, at):
            return Scalar(at, number.end(), _number(number))
        if word := _WORD.match(self.text, at):
            return Scalar(at, word.end(), _WORDS[word.group()])
        raise YamlError("a JSON value was expected here", at)

    def _string(self, at: int) -> Scalar:
        literal = _STRING.match(self.text, at, self.stop)
        try:
            value, length = scanstring(literal.group() if literal else self.text[at : self.stop], 1, True)
        except JSONDecodeError as error:
            raise YamlError(error.msg[0].lower() + error.msg[1:], at + error.pos) from error
        end = at + length
        # Go's encoding/json reads half of a surrogate pair as the replacement character.
        return Scalar(at, end, value if value.isascii() else _HALF.sub("\ufffd", value))

    def _object(self, at: int, depth: int) -> Mapping:
        node = Mapping(at, flow=True)
        at = _space(self.text, at + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                raise YamlError("a key in double quotes was expected here", at)
            self.left -= 1
            key = self._string(at)
            at = _space(self.text, key.end)
            if self.text[at : at + 1] != ":":
                raise YamlError("a `:` was expected after the key", at)
            value = self.value(_space(self.text, at + 1), depth + 1)
            node.pairs.append((key, value))
            at = self._next(node, _space(self.text, value.end), "}")
        node.end = at + 1
        return node

    def _array(self, at: int, depth: int) -> Sequence:
        node = Sequence(at, flow=True)
        text, items = self.text, node.items
        at = _space(text, at + 1)
        while text[at : at + 1] != "]":
            item = self.value(at, depth + 1)
            items.append(item)
            at = self._next(node, _space(text, item.end), "]")
        node.end = at + 1
        return node

    def _next(self, node: Mapping | Sequence, at: int, closing: str) -> int:
        """Past a comma to the next entry, or onto the closing bracket."""
        text = self.text
        found = text[at : at + 1]
        if found == closing:
            return at
        if at >= self.stop:
            opening = text[node.start]
            message = f"the `{opening}` that is opened here is not closed: its `{closing}` is missing"
            raise YamlError(message, node.start)
        if found != ",":
            raise YamlError(f"a `,` or `{closing}` was expected here", at)
        after = _space(text, at + 1)
        if text[after : after + 1] == closing:
            raise YamlError("JSON allows no comma after the last entry", at)
        return after


def _number(found: re.Match[str]) -> int | float:
    text = found.group()
    if len(text) > _MAX_DIGITS:
        raise YamlError("a number of more than 400 digits", found.start(), found.end())
    if found.group(1) is None and found.group(2) is None:
        return int(text)
    return float(text)
