"""Structure of YAML and JSON that is being typed and may not parse.

`read_entries` derives the structure of a document from its indentation. It supports block style with keys on one line, and
flow style (braces and brackets, JSON included), which need not be closed or valid. It does not support anchors, aliases,
merge keys, keys with `?`, and scalars of several lines other than block scalars (`|`, `>`): there it may find nothing, or
too much.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_COMPLETION_CHARACTERS
from apflint.edit.lines import line_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.location import Path

_MAX_FLOW_DEPTH = 100
"""Maximum nesting of braces and brackets. The memory for paths grows with its square."""

KEY = re.compile(
    r"""(?:"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\r\n]|'')*'|[^\s\-#\[\]{},&*!|>'"%@`?:][^\r\n]*?|-(?=\S)[^\r\n]*?)[ \t]*:(?=[ \t\r\n]|\Z)"""
)
DASHES = re.compile(r"[ ]*(?:-[ \t]+)*")
_LINE = re.compile(r"[^\r\n]+")
_VALUE = re.compile(r""""(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\r\n]|'')*'?|(?:[^\s#]|(?<=\S)\#|[ \t]+(?=[^\s#]))*""")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?$")
# A quote that is not closed ends with its line. Otherwise everything behind it would be read with quotes inverted.
_FLOW_TOKEN = re.compile(
    r"""(?P<space>[ \t]+) | (?P<newline>[\r\n]+) | (?P<comment>(?<![^\s,{}\[\]])\#[^\r\n]*)
    | (?P<string>"(?:[^"\\\r\n]|\\.)*(?P<double>"|(?=[\r\n])|\Z)|'(?:[^'\r\n]|'')*(?P<single>'|(?=[\r\n])|\Z))
    | (?P<mark>[{}\[\],]|:(?=[\s{}\[\],"']|\Z))
    | (?P<plain>(?:[^\s{}\[\],:"']|:(?![\s{}\[\],]|\Z))(?:[^{}\[\],:\r\n\#]|:(?![\s{}\[\],]|\Z)|(?<=\S)\#)*)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class Entry(NamedTuple):
    """A value in a document, and its key. A missing value is empty, at the place where it would be."""

    path: Path
    key: tuple[int, int]
    """Start and end of the key; for a list item those of its dash, or its start twice."""
    value: tuple[int, int]
    """Start and end of the value."""
    text: str | None
    """The scalar without its quotes; None for a list or a mapping."""


class DocumentExtent(NamedTuple):
    """One document of a YAML stream: `text[start:end]`."""

    start: int
    end: int


def document_at(text: str, offset: int, *, json: bool = False) -> DocumentExtent | None:
    """Return the document around an offset, from one `---` to the next, or None if it is too long."""
    if json:
        return DocumentExtent(0, len(text)) if len(text) <= MAX_COMPLETION_CHARACTERS else None
    line = line_start(text, offset)
    start = text.rfind("---", 0, line + 3)
    while start >= 0 and not _is_marker(text, start):
        start = text.rfind("---", 0, start + 2)
    end = text.find("\n---", line)
    while end >= 0 and not _is_marker(text, end + 1):
        end = text.find("\n---", end + 1)
    document = DocumentExtent(max(start, 0), len(text) if end < 0 else end + 1)
    return document if document.end - document.start <= MAX_COMPLETION_CHARACTERS else None


def _is_marker(text: str, at: int) -> bool:
    return (at == 0 or text[at - 1] in "\r\n") and text[at + 3 : at + 4] in ("", " ", "\t", "\r", "\n")


@lru_cache(maxsize=2)  # one request reads the same document several times
def read_entries(text: str, document: DocumentExtent) -> tuple[Entry, ...]:
    """Return the values of a document in the order of the text, lists and mappings before their content."""
    return tuple(_BlockReader(text, document).entries)


class _BlockCollection:
    """A mapping or list in block style; its keys or dashes are at `column`, and `last` is the path of its last value."""

    __slots__ = ("column", "index", "is_list", "last", "path")

    def __init__(self, column: int, path: Path, *, is_list: bool) -> None:
        self.column = column
        self.path = path
        self.is_list = is_list
        self.index = -1
        self.last = path


class _BlockReader:
    """Reads a document line by line. `open` are the collections that contain the current line, outermost first."""

    def __init__(self, text: str, document: DocumentExtent) -> None:
        self.text = text
        self.end = document.end
        self.entries: list[Entry] = []
        self.open: list[_BlockCollection] = []
        self.skip = document.start
        self.scalar_column: int | None = None
        """Column of the key of the current block scalar, or None outside of block scalars."""
        for line in _LINE.finditer(text, document.start, document.end):
            if line.start() >= self.skip:
                self._read_line(line.start(), line.end())

    def _read_line(self, start: int, end: int) -> None:
        at = _skip_spaces(self.text, start, end)
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
            self._add_item(at - start, at)
            at = _skip_spaces(self.text, at + 1, end)
            if at == end or self.text[at] == "#":
                return
        key = KEY.match(self.text, at, end)
        if key is not None:
            name_end = at + len(key.group()[:-1].rstrip())
            path = self._add_key(at - start, unquote(self.text[at:name_end]))
            entry = Entry(path, (at, name_end), (0, 0), "")
            self._add_value(entry, _skip_spaces(self.text, key.end(), end), end, at - start)
        elif self.entries and self.open and self.open[-1].is_list and self.open[-1].column < at - start:
            if self.entries[-1].path == self.open[-1].last:
                self._add_value(self.entries.pop(), at, end, self.open[-1].column)
        elif not self.entries and self.text[at] in "{[":
            self._add_value(Entry((), (at, at), (0, 0), ""), at, end, -1)

    def _add_item(self, column: int, at: int) -> None:
        collection = self._enter(column, is_list=True)
        collection.index += 1
        collection.last = (*collection.path, collection.index)
        self.entries.append(Entry(collection.last, (at, at + 1), (at + 1, at + 1), None))

    def _add_key(self, column: int, name: str) -> Path:
        collection = self._enter(column, is_list=False)
        collection.last = (*collection.path, name)
        return collection.last

    def _enter(self, column: int, *, is_list: bool) -> _BlockCollection:
        """Return the collection with keys or dashes at a column. Dashes may be below the first letter of their key."""
        stack = self.open
        while stack and (stack[-1].column > column or (stack[-1].column == column and stack[-1].is_list > is_list)):
            stack.pop()
        if not stack or stack[-1].column < column or stack[-1].is_list != is_list:
            stack.append(_BlockCollection(column, stack[-1].last if stack else (), is_list=is_list))
        return stack[-1]

    def _add_value(self, entry: Entry, at: int, end: int, column: int) -> None:
        """Add an entry whose value starts at `at`, with a key or dash at `column`."""
        if at < end and self.text[at] in "{[":
            scan = FlowScan(self.text, at, self.end, entry.path, column)
            self.entries.append(entry._replace(value=(at, scan.stop), text=None))
            self.entries += scan.entries
            self.skip = max(scan.stop, end)
        elif _BLOCK_SCALAR.match(self.text, at, end):
            self.entries.append(entry._replace(value=(at, end), text=""))
            self.scalar_column = column
        else:
            match = _VALUE.match(self.text, at, end)
            scalar = match.group() if match is not None else ""
            self.entries.append(entry._replace(value=(at, at + len(scalar)), text=unquote(scalar)))


def _skip_spaces(text: str, at: int, end: int) -> int:
    while at < end and text[at] in " \t":
        at += 1
    return at


def scalars_by_path(entries: Sequence[Entry]) -> dict[Path, str]:
    """Return the scalars by their paths."""
    return {entry.path: entry.text for entry in entries if entry.text is not None}


class FlowEnd(NamedTuple):
    """Where text in flow style ends that is not closed: the list or mapping, and the incomplete word."""

    path: Path
    """Path of the list item or, in a mapping, of the value, or of the mapping itself if a key is expected."""
    is_key: bool
    start: int
    """Start of the incomplete word; the end of the text if there is none."""
    quote: str
    """The quote that is open, or an empty string."""


class _FlowCollection:
    """A list or mapping in flow style that is not closed yet."""

    __slots__ = ("after_colon", "index", "is_list", "key", "path")

    def __init__(self, path: Path, *, is_list: bool) -> None:
        self.path = path
        self.is_list = is_list
        self.index = 0
        self.key: tuple[int, int, str] | None = None
        self.after_colon = False

    def start_next(self) -> None:
        self.index += 1
        self.key, self.after_colon = None, False

    @property
    def child(self) -> Path | None:
        """Path of the next value, or None if a key is expected."""
        if self.is_list:
            return (*self.path, self.index)
        return (*self.path, self.key[2]) if self.key is not None and self.after_colon else None


class FlowScan:
    """Reads `text[start:end]`, which starts with a brace or bracket, as the value at `path`.

    `entries` are the values inside. `stop` is the end of the value: behind its closing bracket, before a line that is
    indented by `floor` or less, or `end`. `unclosed` is the place where it ends without a closing bracket, or None.
    """

    def __init__(self, text: str, start: int, end: int, path: Path, floor: int = -1) -> None:
        self.text = text
        self.entries: list[Entry] = []
        self.unclosed: FlowEnd | None = None
        self.stop = end
        self._open: list[_FlowCollection] = []
        self._read(start, end, path, floor)

    def _read(self, start: int, end: int, path: Path, floor: int) -> None:
        quoted = False
        at = start
        while at < end:
            token = _FLOW_TOKEN.match(self.text, at, end)
            assert token is not None, "the last alternative matches any character"
            kind, word, at = token.lastgroup, token.group(), token.end()
            if kind in ("double", "single"):
                kind = "string"
            if quoted and token.start() < at and word.startswith(":"):
                kind, word, at = "mark", ":", token.start() + 1  # JSON needs no space behind the colon
            quoted = kind == "string"
            if kind == "newline" and self._is_outdented(at, end, floor):
                self.stop = token.start()
                break
            if kind in ("string", "plain"):
                trimmed = word.rstrip() if kind == "plain" else word
                if at == end and self._is_incomplete(kind, word):
                    self._end_unclosed(token.start(), word[0] if kind == "string" else "")
                    return
                self._add_scalar(token.start(), token.start() + len(trimmed), unquote(trimmed))
            elif len(self._open) > _MAX_FLOW_DEPTH:
                return
            elif kind == "mark" and self._handle_mark(word, token.start(), path):
                self.stop = at
                return
        self._end_unclosed(self.stop, "")

    def _is_outdented(self, at: int, end: int, floor: int) -> bool:
        line = at
        while line < end and self.text[line] in " \t":
            line += 1
        return line < end and self.text[line] not in "}]\r\n#" and line - at <= floor

    @staticmethod
    def _is_incomplete(kind: str, word: str) -> bool:
        if kind == "plain":
            return word == word.rstrip()
        return len(word) < 2 or word[-1] != word[0]

    def _handle_mark(self, word: str, at: int, path: Path) -> bool:
        """Handle a bracket, comma or colon. Return whether it closes the outermost collection."""
        if word in "{[":
            if self._open:
                top = self._open[-1]
                child = top.child
                path = (*top.path, "") if child is None else child
                key = top.key[:2] if top.key is not None else (at, at)
                self.entries.append(Entry(path, key, (at, at), None))
                top.key, top.after_colon = None, False
            self._open.append(_FlowCollection(path, is_list=word == "["))
            return False
        if word == ":":
            if self._open:
                self._open[-1].after_colon = True
            return False
        self._add_key_without_value(at)
        if word == ",":
            if self._open:
                self._open[-1].start_next()
            return False
        if self._open:
            self._open.pop()
        return not self._open

    def _add_scalar(self, start: int, end: int, value: str) -> None:
        if not self._open:
            return
        top = self._open[-1]
        path = top.child
        if path is None:
            top.key = (start, end, value)
            return
        key = top.key[:2] if top.key is not None else (start, start)
        self.entries.append(Entry(path, key, (start, end), value))
        top.key, top.after_colon = None, False

    def _add_key_without_value(self, at: int) -> None:
        if self._open and (top := self._open[-1]).key is not None:
            start, end, name = top.key
            self.entries.append(Entry((*top.path, name), (start, end), (at, at) if top.after_colon else (end, end), ""))
            top.key = None

    def _end_unclosed(self, start: int, quote: str) -> None:
        if not self._open:
            return
        top = self._open[-1]
        child = top.child
        self.unclosed = FlowEnd(top.path if child is None else child, child is None, start, quote)
        self._add_key_without_value(start)


def unquote(text: str) -> str:
    """Remove the quotes of a scalar or key. Escapes other than those of quotes and slashes stay."""
    if text[:1] == "'":
        return text[1:].removesuffix("'").replace("''", "'")
    if text[:1] == '"':
        inner = text[1:].removesuffix('"')
        return re.sub(r'\\(["\\/])', r"\1", inner)
    return text
