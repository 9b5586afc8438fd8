"""Finds the structure of YAML and JSON that is incomplete because the user is typing.

The structure follows from the indentation. The module supports block style with keys on one line, and flow style
(braces and brackets, as in JSON), even if flow style is invalid or not closed. The module does not support anchors, aliases,
merge keys, keys with `?`, and scalars of several lines except block scalars (`|`, `>`). If the text contains these, entries may
be missing or wrong.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_COMPLETION_CHARACTERS
from apflint.load.yaml import split_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.location import Path

CURSOR = "\ufdd0"
"""Marks the cursor: a Unicode noncharacter, which manifests do not contain. The marked word is a key even without a colon."""
_MAX_FLOW_DEPTH = 100
"""Maximum nesting depth of braces and brackets. The memory for paths grows with the square of the depth."""

_LINE = re.compile(r"(?<![^\r\n])[ \t]*(?P<content>[^ \t\r\n][^\r\n]*)")
_DASH = re.compile(r"-(?:[ \t]+|\Z)")
_KEY = re.compile(
    r"""(?P<name>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|(?:[^\s\-#\[\]{},&*!|>'"%@`?:]|-(?=\S))(?:[^:]|:(?![ \t]|\Z))*)
    [ \t]*:(?:[ \t]+|\Z)""",
    re.VERBOSE,
)
_VALUE = re.compile(r""""(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\r\n]|'')*'?|(?:[^\s#]|(?<=\S)\#|[ \t]+(?=[^\s#]))*""")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?\Z")
_BLOCK_SCALAR_LINES = r"(?:(?:[ \t]*[\r\n])+[ \t]{%d,}[^\r\n]*)*"
# A string without closing quote ends at the end of its line. Otherwise, the opening quote of the next string would
# close this string, and the text between later strings would be read as strings.
_FLOW_TOKEN = re.compile(
    r"""(?P<newline>[\r\n]+[ \t]*) | (?P<comment>(?<![^\s,{}\[\]])\#[^\r\n]*)
    | (?P<colon>:(?=[\s{}\[\],"']|\Z)|(?<=["']):)  # JSON needs no space behind the colon
    | (?P<comma>,) | (?P<open>[{\[]) | (?P<close>[}\]])
    | (?P<scalar>\ufdd0(?=[ \t]*["'])|"(?:[^"\\\r\n]|\\.)*"?|'(?:[^'\r\n]|'')*'?
      |(?:[^\s{}\[\],:"']|:(?![\s{}\[\],]|\Z))(?:[^{}\[\],:\r\n\#]|:(?![\s{}\[\],]|\Z)|(?<=\S)\#)*)""",
    re.VERBOSE | re.DOTALL,
)


class PartialEntry(NamedTuple):
    """A value in a document, and the position of its key or dash.

    The value is that of a field in a mapping, an item of a list, or the root of the document.
    """

    path: Path
    key: tuple[int, int]
    """Start and end of the key, or of the dash of a list item.

    For a list item in brackets, start and end are both the start of the item.
    """
    value: tuple[int, int]
    """Start and end of a scalar.

    For a list or mapping, start and end are both the start of the value. For a missing value, both are the end of the
    key.
    """
    text: str | None
    """The scalar without its quotes, an empty string for a missing value, or None for a list or mapping."""

    @property
    def is_field(self) -> bool:
        """Return whether the value has a key. List items and the root of the document do not have keys."""
        return bool(self.path) and isinstance(self.path[-1], str)

    @property
    def name(self) -> str:
        """The key without its quotes, the index of a list item, or an empty string for the root of the document."""
        return str(self.path[-1]) if self.path else ""


def document_at(text: str, offset: int, *, json: bool = False) -> tuple[int, int] | None:
    """Return start and end of the document that contains an offset, or None if the document is too long for completion."""
    documents = [(0, len(text))] if json else split_documents(text)
    start, end = next(extent for extent in documents if offset < extent[1] or extent[1] == len(text))
    return (start, end) if end - start <= MAX_COMPLETION_CHARACTERS else None


def read_entries(text: str, offset: int, *, json: bool = False) -> list[PartialEntry]:
    """Return the entries of the document that contains an offset, in the order of the text.

    Lists and mappings come before their content. The result is empty if the document is too long.
    """
    document = document_at(text, offset, json=json)
    return _PartialYamlReader(text, *document).entries if document is not None else []


def scalars_by_path(entries: Sequence[PartialEntry]) -> dict[Path, str]:
    """Return the text of each scalar by its path."""
    return {entry.path: entry.text for entry in entries if entry.text is not None}


@dataclass
class _Collection:
    """A mapping or list that contains the current position of the reader."""

    path: Path
    is_list: bool
    column: int = -1
    """Column of the keys or dashes in block style, counted from 0. In flow style: -1."""
    index: int = -1
    last: Path = ()
    """Path of the last value that was read."""
    expects_value: bool = False
    """Whether a value comes next in flow style, after a key and a colon."""

    def start_value(self, key: str | None = None) -> Path:
        """Advance to the value of `key`, or to the next list item if `key` is None. Return the path of this value."""
        self.index += key is None
        self.last = (*self.path, self.index if key is None else key)
        return self.last


class _PartialYamlReader:
    """Reads a document line by line. `open` are the block mappings and lists that contain the current line, outermost first."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.end = end
        self.entries: list[PartialEntry] = []
        self.open: list[_Collection] = []
        stop = start
        for line in _LINE.finditer(text, start, end):
            if line.start() >= stop:
                stop = self._read_line(line.start(), line.start("content"), line.end())

    def _read_line(self, start: int, at: int, end: int) -> int:
        """Read the line `text[start:end]`, whose content starts at `at`.

        Return the end of the value that starts on the line. The value may end on a later line.
        """
        if self.text[at] == "#" or (at == start and self.text.startswith(("---", "...", "%"), at)):
            return end
        while dash := _DASH.match(self.text, at, end):
            path = self._find_collection(at - start, is_list=True).start_value()
            self.entries.append(PartialEntry(path, (at, at + 1), (at + 1, at + 1), None))
            at = dash.end()
        if at == end or self.text[at] == "#":
            return end
        column = at - start
        is_flow = self.text[at] in "{["
        if key := _KEY.match(self.text, at, end):
            self._add_key(column, at, at + len(key["name"].rstrip()))
            return self._read_value(key.end(), end, column)
        if not is_flow and CURSOR in (word := match_text(_VALUE, self.text, at, end)):
            self._add_key(column, at, at + len(word))
        elif self.open and self.open[-1].is_list and self.open[-1].column < column:
            if self.entries[-1].path == self.open[-1].last:
                return self._read_value(at, end, self.open[-1].column)
        elif is_flow and not self.entries:
            self.entries.append(PartialEntry((), (at, at), (at, at), None))
            return self._read_value(at, end, -1)
        return end

    def _find_collection(self, column: int, *, is_list: bool) -> _Collection:
        """Return the open mapping whose keys are at `column`, or the open list whose dashes are at `column`.

        Return a list if `is_list` is true. If there is no such collection, open a new one. A list and the
        mapping with the key of the list may have the same column.
        """
        stack = self.open
        while stack and (stack[-1].column > column or (stack[-1].column == column and stack[-1].is_list > is_list)):
            stack.pop()
        if not stack or stack[-1].column < column or stack[-1].is_list != is_list:
            stack.append(_Collection(stack[-1].last if stack else (), is_list, column))
        return stack[-1]

    def _add_key(self, column: int, start: int, end: int) -> None:
        path = self._find_collection(column, is_list=False).start_value(_unquote(self.text[start:end]))
        self.entries.append(PartialEntry(path, (start, end), (end, end), ""))

    def _read_value(self, start: int, end: int, column: int) -> int:
        """Read the value of the entry that was added last, and return the end of the value.

        `column` is the column of the key or dash of this entry. The value starts at `start`, and the line
        ends at `end`.
        """
        entry = self.entries.pop()
        if self.text[start : start + 1] in ("{", "[") and start < end:
            self.entries.append(entry._replace(value=(start, start), text=None))
            return self._read_flow(start, column)
        scalar = match_text(_VALUE, self.text, start, end)
        if _BLOCK_SCALAR.match(self.text, start, end):
            lines = re.compile(_BLOCK_SCALAR_LINES % (column + 1))
            scalar = self.text[start:end] + match_text(lines, self.text, end, self.end)
        self.entries.append(entry._replace(value=(start, start + len(scalar)), text=_unquote(scalar)))
        return start + len(scalar)

    def _read_flow(self, start: int, column: int) -> int:
        """Read the flow mapping or sequence (`{}` or `[]`) at the offset `start`. Return the offset of its end.

        This collection is the value of the last entry, whose key or dash is at `column`. If the closing
        brace or bracket is missing, the value ends before the next line that is indented by `column` or
        less.
        """
        stack: list[_Collection] = []
        for token in _FLOW_TOKEN.finditer(self.text, start, self.end):
            at, end = token.span()
            if token.lastgroup == "newline" and end < self.end and self.text[end] not in "}]\r\n#":
                if len(token.group().lstrip("\r\n")) <= column:
                    return at
            elif token.lastgroup == "scalar":
                scalar = token.group().rstrip()
                self._add_to_flow(stack[-1], at, at + len(scalar), _unquote(scalar))
            elif token.lastgroup == "open":
                if stack:
                    self._add_to_flow(stack[-1], at, at, None)
                stack.append(_Collection(self.entries[-1].path, token.group() == "["))
                stack[-1].start_value()
            elif token.lastgroup == "colon":
                stack[-1].expects_value = not stack[-1].is_list and self.entries[-1].path == stack[-1].last
            elif token.lastgroup == "comma":
                stack[-1].start_value()
                stack[-1].expects_value = False
            elif token.lastgroup == "close":
                stack.pop()
            if not stack:
                return end
            if len(stack) > _MAX_FLOW_DEPTH:
                break
        return self.end

    def _add_to_flow(self, collection: _Collection, start: int, end: int, text: str | None) -> None:
        """Add a scalar to a collection: as an item, a value or a key. If `text` is None, add a nested list or mapping."""
        if collection.is_list:
            entry = PartialEntry(collection.last, (start, start), (start, end), text)
        elif collection.expects_value:
            entry = self.entries.pop()._replace(value=(start, end), text=text)
        else:
            entry = PartialEntry(
                collection.start_value(text or ""), (start, end), (end, end), None if text is None else ""
            )
        self.entries.append(entry)
        collection.expects_value = False


def match_text(pattern: re.Pattern[str], text: str, start: int, end: int = sys.maxsize) -> str:
    """Return the text that a pattern matches at `start`, or an empty string if the pattern does not match."""
    match = pattern.match(text, start, end)
    return match.group() if match is not None else ""


def _unquote(text: str) -> str:
    """Return a scalar or key without its quotes. Escaped quotes and slashes are unescaped, but other escapes stay."""
    if text[:1] == "'":
        return text[1:].removesuffix("'").replace("''", "'")
    if text[:1] == '"':
        return re.sub(r'\\(["\\/])', r"\1", text[1:].removesuffix('"'))
    return text
