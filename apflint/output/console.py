"""Layout of text for people: its style, colors and links, widths in terminal cells, and line breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

PROSE_WIDTH = 100
"""Maximum number of cells in a line of prose: longer lines are hard to read, however wide the terminal is."""

_CODES = {
    "bold": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "good": "32",
    "gutter": "34",
}
"""SGR parameters (ECMA-48). The 8 colors of the terminal's own palette fit its background."""


class Style(NamedTuple):
    """How to lay out text for people. Formats for machines ignore it: their output is the same everywhere."""

    width: int | None = None
    """Cells in a line of the terminal; None for a pipe: prose is not wrapped, so that a sentence stays on one line."""
    color: bool = False
    hyperlinks: bool = False
    """Print rule ids as links (OSC 8)."""
    quiet: bool = False
    """Print findings only, without the summary."""
    verbose: bool = False
    """Print field paths with findings, and the names of skipped files."""
    statistics: bool = False
    """Print the number of findings of each rule instead of the findings."""

    @property
    def prose_width(self) -> int | None:
        """Cells in a line of prose, or None for a pipe."""
        return self.width and min(self.width, PROSE_WIDTH)


class Painter:
    """Adds colors and links to text, or returns it unchanged if both are off. The text must be sanitized."""

    def __init__(self, *, color: bool = False, hyperlinks: bool = False) -> None:
        self.color = color
        self.hyperlinks = hyperlinks

    def __call__(self, text: str, code: str) -> str:
        """Return `text` in a color of the palette: bold, dim, error, warning, info, good or gutter."""
        return f"\x1b[{_CODES[code]}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str) -> str:
        """Return `text` as a link (OSC 8), or unchanged if `url` is not an https address in printable ASCII."""
        if not (self.hyperlinks and url.startswith("https://") and url.isascii() and url.isprintable()):
            return text
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"


def count_cells(text: str) -> int:
    """Count the terminal cells of sanitized text: 2 for wide East Asian characters and emoji, 0 for combining characters.

    Source: Unicode Standard Annex 11 (East Asian Width); the rule for combining characters is that of wcwidth.
    """
    return len(text) if text.isascii() else sum(map(_count_cells_of, text))


def _count_cells_of(char: str) -> int:
    if char.isascii():
        return 1
    from unicodedata import category, east_asian_width  # most manifests are ASCII

    # U+1160..U+11FF: vowels and finals of Hangul, drawn into the syllable that the initial before them began.
    if category(char) in ("Mn", "Me") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def shorten(text: str, cells: float) -> str:
    """Cut `text` to at most so many cells, with an ellipsis if anything is cut off."""
    if count_cells(text) <= cells:
        return text
    kept = text[: int(cells)]
    while kept and count_cells(kept) + 1 > cells:
        kept = kept[:-1]
    return f"{kept}…"


def wrap(text: str, width: int | None, first: int = 0, rest: int = 0) -> list[str]:
    """Break `text` into lines of at most `width` cells; one line if there is no width.

    `first` cells of the first line and `rest` cells of the other lines are already taken. Words stay whole, because a
    path or an address that is broken cannot be copied: a longer word sticks out. The first line is empty if the first
    word does not fit into it.
    """
    if width is None or not text:
        return [text]
    lines: list[str] = []
    line: list[str] = []
    used = first
    for word in text.split(" "):
        size = count_cells(word)
        if used + bool(line) + size > width and (line or used > rest):
            lines.append(" ".join(line))
            line, used = [], rest
        used += bool(line) + size
        line.append(word)
    return [*lines, " ".join(line)]


def indent_lines(lines: Iterable[str], indent: str) -> list[str]:
    """Put `indent` in front of each line."""
    return [f"{indent}{line}" for line in lines]


def render_prose(style: Style, *sentences: str) -> str:
    """Render sentences, each from a new line on. They are sanitized."""
    return "".join(f"{line}\n" for sentence in sentences for line in wrap(sanitize(sentence), style.prose_width))


def label_lines(label: str, text: str, cells: int, style: Style, paint: Painter, indent: int = 0) -> list[str]:
    """Return lines of sanitized text behind a label with `cells` cells, as a paragraph with a hanging indent."""
    column = indent + cells
    first, *rest = wrap(sanitize(text), style.prose_width, column, column)
    head = f"{' ' * indent}{paint(label, 'dim')}{' ' * (cells - len(label))}{first}"
    return [head, *indent_lines(rest, " " * column)]
