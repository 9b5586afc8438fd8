"""What the mere text of a document shows, before it is parsed: whether there may be something of ours in it, or whose it is."""

from __future__ import annotations

import re

from apflint.load.document import KINDS, LISTS

_WORDS = ("flowcontrol", *KINDS)
_ESCAPED_LETTER = re.compile(r"\\(?:u00|x|U000000)[4-7]")
_KIND = re.compile(r"^kind:[ \t]+[\"']?(\w+)", re.MULTILINE)
_API_VERSION = re.compile(r"^apiVersion:[ \t]+\S", re.MULTILINE)
_OUR_VERSION = re.compile(r"apiVersion[\"']?[ \t]*:?[ \t]*[\"']?flowcontrol")
_SOMETHING = re.compile(r"^[ \t]*[^\s#-]", re.MULTILINE)


class Signs:
    """Where a text has a word of ours: asked of one piece after the other, it is searched once, a million pieces or one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = dict.fromkeys(_WORDS, -1)
        self._escaped = -1
        self._from, self._until = 0, -1

    def within(self, start: int, end: int) -> bool:
        """Whether `text[start:end]` may hold an object of ours. A letter may be written as an escape in a quoted string."""
        if not self._from <= start <= self._until:
            self._until = self._search(start)
            self._from = start
        return self._until < end

    def _search(self, start: int) -> int:
        """Where the next sign at or after `start` is; the end of the text where there is none."""
        text, none = self._text, len(self._text)
        for word, at in self._next.items():
            if at < start or start < self._from:
                found = text.find(word, start)
                self._next[word] = none if found < 0 else found
        if self._escaped < start or start < self._from:
            escape = _ESCAPED_LETTER.search(text, start)
            self._escaped = escape.start() if escape else none
        return min(self._escaped, *self._next.values())


def words_of_ours(text: str, start: int, end: int) -> bool:
    """Whether the API group or one of its kinds is named in `text[start:end]`."""
    return any(text.find(word, start, end) >= 0 for word in _WORDS)


def kind_at_the_margin(text: str, start: int, end: int) -> str | None:
    """The kind that a line at the left margin of a YAML document says."""
    found = _KIND.search(text, start, end)
    return found.group(1) if found else None


def says_something(text: str, start: int, end: int) -> bool:
    """Whether there is anything but comments and markers."""
    return _SOMETHING.search(text, start, end) is not None


def kind_of_others(text: str, start: int, end: int) -> str | None:
    """The kind of an unreadable document that is plainly another's, such as a ClusterRole that names our group.

    Both lines have to say so at the left margin, and no apiVersion may be ours: a document of ours may be broken anywhere.
    """
    kind = kind_at_the_margin(text, start, end)
    if kind is None or kind in (*KINDS, *LISTS, "List") or not _API_VERSION.search(text, start, end):
        return None
    return None if _OUR_VERSION.search(text, start, end) else kind
