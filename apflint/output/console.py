"""Layout of text for people: style, colors, links, widths in terminal cells, and line breaks."""

from __future__ import annotations

from apflint.named_tuple import NamedTuple
from apflint.output.sanitize import sanitize

PROSE_WIDTH = 100
"""Maximum width of a line of prose, in cells. Longer lines are hard to read, even on wide terminals."""
_NOTE_INDENT = 2
"""Cells before the lines of a dim sentence after the first, such as the line that names the configuration."""

PALETTE = {
    "bold": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;35",
    "info": "1;34",
    "good": "32",
    "bad": "31",
    "caution": "35",
    "gutter": "34",
}
"""SGR parameters of the styles (ECMA-48): colors of the terminal's palette.

In most palettes, yellow and cyan are too pale to read on white. Warnings are magenta, as those of GCC and Clang.
"""


class Style(NamedTuple):
    """Options for the layout of text for people. Formats for programs ignore the style."""

    width: int | None = None
    """Width of the terminal in cells, or None for a pipe. In a pipe, prose is not wrapped."""
    color: bool = False
    hyperlinks: bool = False
    """Print rule IDs as links (OSC 8)."""
    quiet: bool = False
    """Print findings only, without the summary."""
    verbose: bool = False
    """Print field paths with findings, and the names of skipped files."""
    statistics: bool = False
    """Print the number of findings of each rule instead of the findings."""

    @property
    def prose_width(self) -> int | None:
        """Return the maximum width of prose in cells, or None for a pipe."""
        return self.width and min(self.width, PROSE_WIDTH)

    def paint(self, text: str, code: str) -> str:
        """Return `text` in the style `code`, or unchanged if colors are off. `text` must be sanitized."""
        return f"\x1b[{PALETTE[code]}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str) -> str:
        """Return `text` as a link (OSC 8), or unchanged if links are off or `url` is not an https URL in printable ASCII."""
        if not (self.hyperlinks and url.startswith("https://") and url.isascii() and url.isprintable()):
            return text
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"


def count_cells(text: str) -> int:
    """Count the terminal cells of sanitized text: 2 for wide East Asian characters and emoji, 0 for combining characters.

    Sources: Unicode Standard Annex 11 (East Asian Width), and the Python package wcwidth for combining characters.
    """
    return len(text) if text.isascii() else sum(map(_count_cells_of, text))


def _count_cells_of(char: str) -> int:
    if char.isascii():
        return 1
    from unicodedata import category, east_asian_width  # imported on demand: most manifests are ASCII

    # U+1160..U+11FF are vowels and final consonants of Hangul. They have no width, because they are drawn in the cell of the
    # initial consonant before them.
    if category(char) in ("Mn", "Me") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def shorten(text: str, cells: float) -> str:
    """Return `text`, cut to at most `cells` terminal cells. If it is cut, the result ends with an ellipsis."""
    if count_cells(text) <= cells:
        return text
    kept = text[: int(cells)]
    while kept and count_cells(kept) + 1 > cells:
        kept = kept[:-1]
    return f"{kept}…"


def wrap(text: str, width: int | None, first: int = 0, rest: int = 0) -> list[str]:
    """Break `text` into lines of at most `width` cells. If `width` is None, return one line.

    The caller prints other text at the start of the lines: `first` cells on the first line, and `rest` cells on all other
    lines. Words are never broken, so that paths and URLs can be copied. So a line with a long word can exceed the width. The
    first line is empty if the first word does not fit into it.
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


def hang(head: str, text: str, width: int | None, indent: int, cells: int | None = None) -> list[str]:
    """Sanitize `text`, and return it as lines with a hanging indent.

    The first line begins with `head`, which is not sanitized.

    The lines after the first are indented by `indent` cells. `cells` is the visible width of `head`. This argument is
    needed if `head` contains color codes.
    """
    first, *rest = wrap(sanitize(text), width, len(head) if cells is None else cells, indent)
    return [f"{head}{first}".rstrip(" "), *(f"{' ' * indent}{line}" for line in rest)]


def render_prose(style: Style, sentence: str, color: str = "") -> str:
    """Sanitize a sentence, wrap it, and return its lines in the style `color`. Continuation lines of dim sentences are indented."""
    indent = _NOTE_INDENT if color == "dim" else 0
    first, *rest = wrap(sanitize(sentence), style.prose_width, 0, indent)
    lines = [(0, first), *((indent, line) for line in rest)]
    return "".join(f"{' ' * cells}{style.paint(line, color) if color else line}\n" for cells, line in lines)
