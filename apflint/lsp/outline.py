"""The shape of a document from its indentation alone, so that it is known while somebody types and nothing parses.

It knows block style with keys on one line, and what is in braces and brackets. It does not know anchors, aliases, merge
keys, keys with `?`, and texts of several lines but for those after `|` and `>`: there it may find nothing, or too much.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.lines import line_start
from apflint.lsp.flow import Entry, Scan, unquoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.finding import Path

LONGEST = 500_000
"""Characters of a document that is looked at. A person types into shorter ones."""

KEY = re.compile(
    r"""(?:"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\r\n]|'')*'|[^\s\-#\[\]{},&*!|>'"%@`?:][^\r\n]*?|-(?=\S)[^\r\n]*?)[ \t]*:(?=[ \t\r\n]|\Z)"""
)
DASHES = re.compile(r"[ ]*(?:-[ \t]+)*")
_LINE = re.compile(r"[^\r\n]+")
_VALUE = re.compile(r""""(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\r\n]|'')*'?|(?:[^\s#]|(?<=\S)\#|[ \t]+(?=[^\s#]))*""")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?$")


class Piece(NamedTuple):
    """One document of a text: `text[start:end]`."""

    start: int
    end: int


def piece(text: str, offset: int, *, json: bool = False) -> Piece | None:
    """The document around an offset, from one `---` to the next; None where it is longer than what is looked at."""
    if json:
        return Piece(0, len(text)) if len(text) <= LONGEST else None
    line = line_start(text, offset)
    start = text.rfind("---", 0, line + 3)
    while start >= 0 and not _is_marker(text, start):
        start = text.rfind("---", 0, start + 2)
    end = text.find("\n---", line)
    while end >= 0 and not _is_marker(text, end + 1):
        end = text.find("\n---", end + 1)
    found = Piece(max(start, 0), len(text) if end < 0 else end + 1)
    return found if found.end - found.start <= LONGEST else None


def _is_marker(text: str, at: int) -> bool:
    return (at == 0 or text[at - 1] in "\r\n") and text[at + 3 : at + 4] in ("", " ", "\t", "\r", "\n")


@lru_cache(maxsize=2)  # one question asks for it more than once
def outline(text: str, part: Piece) -> tuple[Entry, ...]:
    """The values of a document in the order of the text, lists and mappings before what is in them."""
    return tuple(_Reader(text, part).entries)


class _Level:
    """A mapping or list whose keys or dashes are at `column`; `last` is the path of its last value."""

    __slots__ = ("column", "index", "is_list", "last", "path")

    def __init__(self, column: int, path: Path, *, is_list: bool) -> None:
        self.column = column
        self.path = path
        self.is_list = is_list
        self.index = -1
        self.last = path


class _Reader:
    def __init__(self, text: str, part: Piece) -> None:
        self.text = text
        self.end = part.end
        self.entries: list[Entry] = []
        self.levels: list[_Level] = []
        self.skip = part.start
        self.scalar_column: int | None = None
        """The column of the key whose value is a text of several lines, while in it."""
        for line in _LINE.finditer(text, part.start, part.end):
            if line.start() >= self.skip:
                self._line(line.start(), line.end())

    def _line(self, start: int, end: int) -> None:
        at = _past_blanks(self.text, start, end)
        if at == end:
            return
        column = at - start
        if self.scalar_column is not None:
            if column > self.scalar_column:
                last = self.entries[-1]
                self.entries[-1] = last._replace(value=(last.value[0], end))
                return
            self.scalar_column = None
        if self.text[at] == "#" or (column == 0 and self.text.startswith(("---", "...", "%"), at)):
            return
        while self.text[at] == "-" and (at + 1 == end or self.text[at + 1] in " \t"):
            self._item(at - start, at)
            at = _past_blanks(self.text, at + 1, end)
            if at == end or self.text[at] == "#":
                return
        found = KEY.match(self.text, at, end)
        if found is not None:
            name_end = at + len(found.group()[:-1].rstrip())
            path = self._key(at - start, unquoted(self.text[at:name_end]))
            self._value(
                Entry(path, (at, name_end), (0, 0), ""), _past_blanks(self.text, found.end(), end), end, at - start
            )
        elif self.entries and self.levels and self.levels[-1].is_list and self.levels[-1].column < at - start:
            item = self.entries[-1]
            if item.path == self.levels[-1].last:
                self._value(self.entries.pop(), at, end, self.levels[-1].column)
        elif not self.entries and self.text[at] in "{[":
            self._value(Entry((), (at, at), (0, 0), ""), at, end, -1)

    def _item(self, column: int, at: int) -> None:
        while self.levels and self.levels[-1].column > column:
            self.levels.pop()
        if not self.levels or not self.levels[-1].is_list or self.levels[-1].column < column:
            path = self.levels[-1].last if self.levels else ()
            self.levels.append(_Level(column, path, is_list=True))
        level = self.levels[-1]
        level.index += 1
        level.last = (*level.path, level.index)
        self.entries.append(Entry(level.last, (at, at + 1), (at + 1, at + 1), None))

    def _key(self, column: int, name: str) -> Path:
        while self.levels and (
            self.levels[-1].column > column or (self.levels[-1].is_list and self.levels[-1].column == column)
        ):
            self.levels.pop()
        if not self.levels or self.levels[-1].column < column:
            path = self.levels[-1].last if self.levels else ()
            self.levels.append(_Level(column, path, is_list=False))
        level = self.levels[-1]
        level.last = (*level.path, name)
        return level.last

    def _value(self, entry: Entry, at: int, end: int, column: int) -> None:
        """Adds an entry with the value that starts at `at`, of a key or dash at `column`."""
        if at < end and self.text[at] in "{[":
            scan = Scan(self.text, at, self.end, entry.path, column)
            self.entries.append(entry._replace(value=(at, scan.stop), text=None))
            self.entries += scan.entries
            self.skip = max(scan.stop, end)
        elif _BLOCK_SCALAR.match(self.text, at, end):
            self.entries.append(entry._replace(value=(at, end), text=""))
            self.scalar_column = column
        else:
            found = _VALUE.match(self.text, at, end)
            written = found.group() if found is not None else ""
            self.entries.append(entry._replace(value=(at, at + len(written)), text=unquoted(written)))


def _past_blanks(text: str, at: int, end: int) -> int:
    while at < end and text[at] in " \t":
        at += 1
    return at


def texts(entries: Sequence[Entry]) -> dict[Path, str]:
    """The scalars by their paths."""
    return {entry.path: entry.text for entry in entries if entry.text is not None}
