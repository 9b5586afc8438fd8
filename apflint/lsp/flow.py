"""What is written in braces and brackets, JSON included, up to any point: it need not be closed, nor be right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from apflint.finding import Path

# A quote that is not closed yet ends with its line, or else all that follows would be the wrong way round.
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+) | (?P<newline>[\r\n]+) | (?P<comment>(?<![^\s,{}\[\]])\#[^\r\n]*)
    | (?P<string>"(?:[^"\\\r\n]|\\.)*(?P<double>"|(?=[\r\n])|\Z)|'(?:[^'\r\n]|'')*(?P<single>'|(?=[\r\n])|\Z))
    | (?P<mark>[{}\[\],]|:(?=[\s{}\[\],"']|\Z))
    | (?P<plain>(?:[^\s{}\[\],:"']|:(?![\s{}\[\],]|\Z))(?:[^{}\[\],:\r\n\#]|:(?![\s{}\[\],]|\Z)|(?<=\S)\#)*)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


_DEEPEST = 100


class Entry(NamedTuple):
    """A value in a document, with the place of its key. A value that is missing is empty, where it would be."""

    path: Path
    key: tuple[int, int]
    """Start and end of the key; of an item of a list the place before it, or its dash."""
    value: tuple[int, int]
    text: str | None
    """A scalar without its quotes; None for a list or a mapping."""


class Inside(NamedTuple):
    """The place at which a text in braces or brackets breaks off: in which list or mapping, and in what word."""

    path: Path
    """Of the list item or, in a mapping, of the value, or of the mapping itself where a key is expected."""
    is_key: bool
    start: int
    """Where the word starts that is broken off; the end of the text where none is."""
    quote: str
    """The quote that is open, or nothing."""


class _Open:
    """A list or mapping that is not closed yet."""

    __slots__ = ("after_colon", "index", "is_list", "key", "path")

    def __init__(self, path: Path, *, is_list: bool) -> None:
        self.path = path
        self.is_list = is_list
        self.index = 0
        self.key: tuple[int, int, str] | None = None
        self.after_colon = False

    def next(self) -> None:
        self.index += 1
        self.key, self.after_colon = None, False

    @property
    def child(self) -> Path | None:
        """The path of a value that comes now; None where a key is expected."""
        if self.is_list:
            return (*self.path, self.index)
        return (*self.path, self.key[2]) if self.key is not None and self.after_colon else None


class Scan:
    """Reads `text[start:end]`, which starts with a brace or bracket, as the value at `path`.

    `entries` are the values inside, `stop` is where it ends: behind what closes it, or before a line that is indented by
    `floor` or less, or at `end`. `inside` tells where it breaks off; None where it is closed.
    """

    def __init__(self, text: str, start: int, end: int, path: Path, floor: int = -1) -> None:
        self.text = text
        self.entries: list[Entry] = []
        self.inside: Inside | None = None
        self.stop = end
        self._open: list[_Open] = []
        self._read(start, end, path, floor)

    def _read(self, start: int, end: int, path: Path, floor: int) -> None:
        quoted = False
        at = start
        while at < end:
            found = _TOKEN.match(self.text, at, end)
            assert found is not None, "the last alternative takes any character"
            kind, word, at = found.lastgroup, found.group(), found.end()
            if kind in ("double", "single"):
                kind = "string"
            if quoted and found.start() < at and word.startswith(":"):
                kind, word, at = "mark", ":", found.start() + 1  # JSON needs no blank behind the colon
            quoted = kind == "string"
            if kind == "newline" and self._ends(at, end, floor):
                self.stop = found.start()
                break
            if kind in ("string", "plain"):
                whole = word.rstrip() if kind == "plain" else word
                if at == end and self._breaks_off(kind, word):
                    self._inside(found.start(), word[0] if kind == "string" else "")
                    return
                self._scalar(found.start(), found.start() + len(whole), unquoted(whole))
            elif len(self._open) > _DEEPEST:
                return  # nobody types this, and the paths take space by the square
            elif kind == "mark" and self._mark(word, found.start(), path):
                self.stop = at
                return
        self._inside(self.stop, "")

    def _ends(self, at: int, end: int, floor: int) -> bool:
        line = at
        while line < end and self.text[line] in " \t":
            line += 1
        return line < end and self.text[line] not in "}]\r\n#" and line - at <= floor

    @staticmethod
    def _breaks_off(kind: str, word: str) -> bool:
        if kind == "plain":
            return word == word.rstrip()
        return len(word) < 2 or word[-1] != word[0]

    def _mark(self, word: str, at: int, path: Path) -> bool:
        """Takes note of a bracket, comma or colon; whether it closes the whole."""
        if word in "{[":
            if self._open:
                top = self._open[-1]
                child = top.child
                path = (*top.path, "") if child is None else child
                key = top.key[:2] if top.key is not None else (at, at)
                self.entries.append(Entry(path, key, (at, at), None))
                top.key, top.after_colon = None, False
            self._open.append(_Open(path, is_list=word == "["))
            return False
        if word == ":":
            if self._open:
                self._open[-1].after_colon = True
            return False
        self._lonely_key(at)
        if word == ",":
            if self._open:
                self._open[-1].next()
            return False
        if self._open:
            self._open.pop()
        return not self._open

    def _scalar(self, start: int, end: int, value: str) -> None:
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

    def _lonely_key(self, at: int) -> None:
        """A key without a value."""
        if self._open and (top := self._open[-1]).key is not None:
            start, end, name = top.key
            self.entries.append(Entry((*top.path, name), (start, end), (at, at) if top.after_colon else (end, end), ""))
            top.key = None

    def _inside(self, start: int, quote: str) -> None:
        if not self._open:
            return
        top = self._open[-1]
        child = top.child
        self.inside = Inside(top.path if child is None else child, child is None, start, quote)
        self._lonely_key(start)


def unquoted(text: str) -> str:
    """A scalar or key without its quotes, where it has any; escapes other than of quotes and slashes stay."""
    if text[:1] == "'":
        return text[1:].removesuffix("'").replace("''", "'")
    if text[:1] == '"':
        inner = text[1:].removesuffix('"')
        return re.sub(r'\\(["\\/])', r"\1", inner)
    return text
