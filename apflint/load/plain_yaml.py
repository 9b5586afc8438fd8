"""The value of a YAML document that has nothing special in it, straight from its lines or events: 3 to 5 times as fast as by a tree.

Nearly all manifests are so. What is special (anchors, tags, merge keys, keys that are no strings or that are there twice,
.inf and .nan, deep nesting, whatever cannot be read) is left to the tree and to `apflint.load.decode`, which say where it
is. A property test holds the values of the two ways equal.
"""

from __future__ import annotations

from math import isfinite
from sys import intern
from typing import TYPE_CHECKING, Any

from apflint.load.line_yaml import value_by_lines
from apflint.load.scalars import key, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.load.yaml_text import Parser

LARGEST = 500_000
"""Characters of a document. Two of them can make three values (`[?,?]`), and `apflint.load.yaml_text` reads so many."""
DEEPEST = 100
_SPECIAL = ("&", "!", "<<")


class _SpecialError(Exception):
    pass


def plain_value(text: str, parser: Callable[[str], Parser]) -> dict[str, object] | list[object] | None:
    """The value of a text with one document, or None where there is something special in it. Never raises."""
    if len(text) > LARGEST:
        return None
    value = value_by_lines(text)
    return value_by_events(text, parser) if value is None else value


def value_by_events(text: str, parser: Callable[[str], Parser]) -> dict[str, object] | list[object] | None:
    """The same for what is not written a line for each thing."""
    if any(sign in text for sign in _SPECIAL):
        return None
    from yaml import events
    from yaml.error import YAMLError

    try:
        return _Reader(parser(text), events).root()
    except (YAMLError, UnicodeEncodeError, _SpecialError):
        return None


class _Reader:
    """Strings are interned: keys, verbs and resources come again and again, and take most of the memory else."""

    def __init__(self, parser: Parser, events: Any) -> None:
        self.next = parser.get_event
        self.scalar, self.stream_end = events.ScalarEvent, events.StreamEndEvent
        self.mapping_start, self.mapping_end = events.MappingStartEvent, events.MappingEndEvent
        self.sequence_start, self.sequence_end = events.SequenceStartEvent, events.SequenceEndEvent

    def root(self) -> dict[str, Any] | list[Any] | None:
        self.next()  # the start of the stream
        event: Any = self.next()
        if event.__class__ is self.stream_end or event.version:
            return None
        value = self._value(self.next(), 0)
        self.next()  # the end of the document
        if self.next().__class__ is not self.stream_end or not isinstance(value, dict | list):
            return None
        return value

    def _value(self, event: Any, depth: int) -> Any:
        kind = event.__class__
        if kind is self.scalar:
            text = event.value
            value = plain(text) if event.implicit[0] else text
            if value.__class__ is str:
                return intern(value)
            if value.__class__ is float and not isfinite(value):
                raise _SpecialError
            return value
        if depth > DEEPEST:
            raise _SpecialError
        if kind is self.mapping_start:
            return self._mapping(depth + 1)
        if kind is self.sequence_start:
            return self._sequence(depth + 1)
        raise _SpecialError

    def _mapping(self, depth: int) -> dict[str, Any]:
        get, end = self.next, self.mapping_end
        found: dict[str, Any] = {}
        event: Any
        while (event := get()).__class__ is not end:
            if event.__class__ is not self.scalar:
                raise _SpecialError
            name = event.value
            if name in found or (event.implicit[0] and key(name).__class__ is not str):
                raise _SpecialError
            found[intern(name)] = self._value(get(), depth)
        return found

    def _sequence(self, depth: int) -> list[Any]:
        get, end = self.next, self.sequence_end
        found: list[Any] = []
        while (event := get()).__class__ is not end:
            found.append(self._value(event, depth))
        return found
