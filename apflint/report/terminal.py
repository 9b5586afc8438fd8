"""Text as a terminal shows it: escapes for what cannot be seen, widths in cells, line breaks, colours and links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CODES = {
    "bold": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "good": "32",
    "gutter": "34",
}
"""SGR parameters (ECMA-48) of the colours in use: the 8 of the terminal's own palette, which fit its background."""


_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)
"""What begins a command wherever it stands in a line of a log: `##[set-output ...]` on GitHub, `##vso[...]` on Azure Pipelines.

Sources: actions/runner, `ActionCommand.TryParse`, which is tried if there is no `::`; azure-pipelines-agent, `Command.TryParse`;
TeamCity, "Service messages".
"""


class Paint:
    """Colours and links, or none: with both off, text comes back as it was. Text must be `visible` already."""

    def __init__(self, *, colour: bool = False, hyperlinks: bool = False) -> None:
        self.colour = colour
        self.hyperlinks = hyperlinks

    def __call__(self, text: str, code: str) -> str:
        """`text` in one of the colours above."""
        return f"\x1b[{_CODES[code]}m{text}\x1b[0m" if self.colour and text else text

    def link(self, text: str, url: str) -> str:
        """`text` as a link (OSC 8); plain where `url` is no https address of printable ASCII."""
        if not (self.hyperlinks and url.startswith("https://") and url.isascii() and url.isprintable()):
            return text
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"


def visible(text: str) -> str:
    r"""`text` with everything that is not printable as an escape, as YAML writes it: `\n`, `\x1b`, `\u202e`.

    Not printable is what Unicode calls Other or Separator, the blank aside: control characters, bidirectional
    overrides, zero-width and no-break spaces, lone surrogates. None of them reaches a terminal raw, and in a manifest
    each of them is worth seeing. The second `#` of what would be a command in the log of a CI system is an escape, too.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escaped(char) for char in text)
    return _broken(text, r"\x23") if "##" in text else text


def inert(text: str) -> str:
    """JSON that says the same without anything that a log takes for a command: those can only be inside its strings."""
    return _broken(text, r"\u0023") if "##" in text else text


def _broken(text: str, escape: str) -> str:
    return _COMMAND.sub(lambda _: f"#{escape}", text)


def commands(text: str) -> Iterator[int]:
    """Where in a text a character has to be an escape, or a log would have a command there."""
    return (found.start() + 1 for found in _COMMAND.finditer(text))


def heading(file: str) -> str:
    """A file's name where a line begins with it, as a path that means the same: `::` there is a command to GitHub's runner.

    Source: actions/runner, `ActionCommand.TryParseV2`, which passes over blanks at the beginning of a line.
    """
    shown = visible(file)
    return f"./{shown}" if shown.lstrip().startswith("::") else shown


def leading(text: str) -> str:
    """Other text where a line begins with it: an escape in place of what would make a command of the line."""
    shown = visible(text)
    return shown.replace(":", r"\x3a", 1) if shown.lstrip().startswith("::") else shown


def escaped(char: str) -> str:
    """One character as an escape of printable ASCII."""
    return char.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """How many cells of a terminal `visible` text takes: 2 for wide East Asian characters and emoji, 0 for combining ones.

    Source: Unicode Standard Annex 11 (East Asian Width); the rule for combining characters is that of wcwidth.
    """
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(char: str) -> int:
    if char.isascii():
        return 1
    from unicodedata import category, east_asian_width  # most manifests are ASCII

    # U+1160..U+11FF: vowels and finals of Hangul, drawn into the syllable that the initial before them began.
    if category(char) in ("Mn", "Me") or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def wrap(text: str, width: int | None, first: int = 0, rest: int = 0) -> list[str]:
    """`text` in lines of at most `width` cells, of which `first` and then `rest` are taken by what stands before.

    Words stay whole, because a path or an address that is broken cannot be copied: a longer one sticks out. Where the
    first word does not fit behind `first`, the first line is empty. No width: one line.
    """
    if width is None:
        return [text]
    lines: list[str] = []
    line: list[str] = []
    used = first
    for word in text.split(" "):
        size = cells(word)
        if used + bool(line) + size > width and (line or used > rest):
            lines.append(" ".join(line))
            line, used = [], rest
        used += bool(line) + size
        line.append(word)
    return [*lines, " ".join(line)]


def indented(lines: Iterable[str], indent: str) -> list[str]:
    """Each line behind `indent`."""
    return [f"{indent}{line}" for line in lines]


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
