"""The value of a YAML document that has nothing special in it, straight from its lines or events: 3 to 5 times as fast as by a tree.

Nearly all manifests are so. What is special (anchors, tags, merge keys, keys that are no strings or that are there twice,
.inf and .nan, deep nesting, whatever cannot be read) is left to the tree and to `apflint.load.decode`, which say where it
is. A property test holds the values of the two ways equal.
"""

from __future__ import annotations

from math import isfinite
from sys import intern
from typing import TYPE_CHECKING, Any

from apflint.load.fast_yaml import value_by_lines
from apflint.load.scalars import key, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.load.yaml import Parser

MAX_EVENTS_LENGTH = 500_000
"""Characters of a document that is read from events."""
DEEPEST = 100
_SPECIAL = ("&", "!", "<<")


class _SpecialError(Exception):
    pass


def plain_value(text: str, parser: Callable[[str], Parser], max_values: int) -> dict[str, object] | list[object] | None:
    """Return the value of a text with one document, or None if the text may need its tree. Never raises.

    A document of more than `max_values` keys, scalars, lists and mappings needs it: the tree reports the limit.
    """
    if _count_at_most(text) > max_values:
        return None
    value = value_by_lines(text)
    return value_by_events(text, parser) if value is None and len(text) <= MAX_EVENTS_LENGTH else value


def _count_at_most(text: str) -> int:
    """Return an upper bound of the values in a document, if it is one that `fast_yaml` or the events can read.

    A short text is bounded by its length: two characters can make three values (`[?,?]`). In a longer one each line has at
    most one key, each item follows a dash, a bracket or a comma, and the root is one more.
    """
    if len(text) <= MAX_EVENTS_LENGTH:
        return 0
    keys = text.count(": ") + text.count(":\n") + 1
    return 1 + 2 * keys + text.count("- ") + text.count("[") + text.count(",")


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
