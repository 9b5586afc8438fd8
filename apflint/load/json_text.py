"""JSON text to the same trees as YAML, by JSON's own rules (RFC 8259): `5.0` is no integer here, `yes` is nothing at all.

Several values one after the other are several documents, as kubectl reads them.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]  # not in its stubs
from typing import TYPE_CHECKING

from apflint.load.node import Mapping, Node, Scalar, Sequence
from apflint.load.yaml_text import MAX_DEPTH, MAX_VALUES, YamlDocument, YamlError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_HALF = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"true|false|null")
_WORDS = {"true": True, "false": False, "null": None}
_MAX_DIGITS = 400  # longer numbers overflow a float as well; Go refuses them


def documents(text: str) -> Iterator[YamlDocument]:
    """The values in the text, each as a document; the last one may be an error. Never raises."""
    at = _space(text, 0)
    while at < len(text):
        try:
            root = compose(text, at, len(text))
        except YamlError as error:
            yield YamlDocument(at, len(text), None, error)
            return
        yield YamlDocument(at, root.end, root)
        at = _space(text, root.end)


def compose(text: str, start: int, _end: int) -> Node:
    """The tree of the value that starts at `start`; it ends where it ends. Raises YamlError."""
    return _Reader(text).value(start, 0)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.left = MAX_VALUES

    def value(self, at: int, depth: int) -> Node:
        self.left -= 1
        if depth > MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep", at, unsafe=True)
        if self.left < 0:
            raise YamlError(f"more than {MAX_VALUES:,} values in one document", at, unsafe=True)
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first == '"':
            return self._string(at)
        if word := _WORD.match(self.text, at):
            return Scalar(at, word.end(), _WORDS[word.group()])
        if number := _NUMBER.match(self.text, at):
            return Scalar(at, number.end(), _number(number))
        raise YamlError("a JSON value was expected here", at)

    def _string(self, at: int) -> Scalar:
        try:
            value, end = scanstring(self.text, at + 1, True)
        except JSONDecodeError as error:
            raise YamlError(error.msg[0].lower() + error.msg[1:], error.pos) from error
        # Go's encoding/json reads half of a surrogate pair as the replacement character.
        return Scalar(at, end, value if value.isascii() else _HALF.sub("\ufffd", value))

    def _object(self, at: int, depth: int) -> Mapping:
        node = Mapping(at, flow=True)
        at = _space(self.text, at + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                raise YamlError("a key in double quotes was expected here", at)
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
        at = _space(self.text, at + 1)
        while self.text[at : at + 1] != "]":
            item = self.value(at, depth + 1)
            node.items.append(item)
            at = self._next(node, _space(self.text, item.end), "]")
        node.end = at + 1
        return node

    def _next(self, node: Mapping | Sequence, at: int, closing: str) -> int:
        """Past a comma to the next entry, or onto the closing bracket."""
        if self.text[at : at + 1] == closing:
            return at
        if at >= len(self.text):
            opening = self.text[node.start]
            message = f"the `{opening}` that is opened here is not closed: its `{closing}` is missing"
            raise YamlError(message, node.start)
        if self.text[at : at + 1] != ",":
            raise YamlError(f"a `,` or `{closing}` was expected here", at)
        after = _space(self.text, at + 1)
        if self.text[after : after + 1] == closing:
            raise YamlError("JSON allows no comma after the last entry", at)
        return after


def _number(found: re.Match[str]) -> int | float:
    text = found.group()
    if len(text) > _MAX_DIGITS:
        raise YamlError("a number of more than 400 digits", found.start(), found.end())
    if found.group(1) is None and found.group(2) is None:
        return int(text)
    return float(text)
