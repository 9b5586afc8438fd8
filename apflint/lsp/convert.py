"""Conversion between apflint's values and those of the protocol: URIs, positions, ranges, edits, Markdown.

apflint counts code points from 1. The protocol counts lines and characters from 0. Characters are UTF-16 code units, unless
client and server agree on UTF-8 or UTF-32 (LSP 3.17, `PositionEncodingKind`). Lines end as in `Source`: with LF, CRLF or
CR.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lsprotocol import types
from pygls import uris

from apflint.edit.line_diff import find_changes
from apflint.fix import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.load.source import Source
    from apflint.location import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_CODECS: dict[Encoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
"""Python's codec and the bytes of a unit."""

ANY_FORMAT = (types.MarkupKind.Markdown, types.MarkupKind.PlainText)
"""The formats to assume if an editor reports none."""
_MARKUP = re.compile(
    r"""\\(?P<character>[\\`*_<>\[\]#|~]) | (?P<fence>`+)[ ]?(?P<code>.+?)[ ]?(?P=fence) | \*\*
    | \[(?P<text>[^\]]*)\]\((?P<url>[^)]*)\)""",
    re.VERBOSE,
)


# URIs


def path_from_uri(uri: str) -> str | None:
    """Return the path of a `file:` URI, or None for another scheme, another host and an invalid URI."""
    for character, escape in (("#", "%23"), (";", "%3B"), ("?", "%3F")):  # in names; some clients do not escape them
        uri = uri.replace(character, escape)
    try:
        path = uris.to_fs_path(uri.replace("file://localhost/", "file:///", 1))
    except ValueError:
        return None
    if path is None or "\0" in path or "\N{REPLACEMENT CHARACTER}" in path:
        return None
    if os.name != "nt" and (not path.startswith("/") or path.startswith("//")):  # //host/share
        return None
    return os.path.normpath(path)


def uri_from_path(path: str) -> str:
    """Return the `file:` URI of a path. Unlike `pygls.uris`, pathlib accepts file names that are not valid UTF-8."""
    return Path(os.path.abspath(path)).as_uri()


def is_untitled(uri: str) -> bool:
    """Return whether a document has no file yet."""
    return uri.startswith("untitled:")


# Positions


def position_at(source: Source, offset: int, encoding: Encoding) -> types.Position:
    """Return the position of an offset in code points. An offset outside of the text becomes its nearest end."""
    offset = min(max(offset, 0), len(source.text))
    line, column = source.position(offset)
    return types.Position(line - 1, _count_units(source.text[offset - column + 1 : offset], encoding))


def offset_at(source: Source, position: types.Position, encoding: Encoding) -> int:
    """Return the offset of a position. A position behind the end of its line, or of the text, becomes that end."""
    if position.line >= len(source.line_starts):
        return len(source.text)
    line = source.line(position.line + 1)
    columns = range(len(line) + 1)
    column = bisect_left(columns, position.character, key=lambda column: _count_units(line[:column], encoding))
    return source.line_starts[max(position.line, 0)] + min(column, len(line))


def range_at(source: Source, start: int, end: int, encoding: Encoding) -> types.Range:
    """Return the range of `text[start:end]`."""
    return types.Range(position_at(source, start, encoding), position_at(source, end, encoding))


def range_of_span(source: Source, span: Span, encoding: Encoding) -> types.Range:
    """Return the range of a span, which counts code points from 1."""
    start, end = (
        types.Position(line - 1, _count_units(source.line(line)[: column - 1], encoding))
        for line, column in (span[:2], span[2:])
    )
    return types.Range(start, end)


def _count_units(text: str, encoding: Encoding) -> int:
    # PositionCodec counts the characters one by one in Python: seconds for findings in JSON of one long line.
    codec, size = _CODECS[encoding]
    return len(text) if text.isascii() else len(text.encode(codec, "surrogatepass")) // size


# Edits


def line_edits(old: str, new: str) -> tuple[Edit, ...]:
    """Return edits of whole lines that turn one text into another: few of them, but not always the fewest."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, before))]
    return tuple(
        Edit(starts[change.start], starts[change.end], "".join(after[change.new_start : change.new_end]))
        for change in find_changes(before, after)
    )


# Markdown


def markup(markdown: str, formats: Sequence[types.MarkupKind]) -> types.MarkupContent:
    """Return Markdown, or plain text if the editor supports only `formats` without Markdown."""
    if types.MarkupKind.Markdown in formats:
        return types.MarkupContent(types.MarkupKind.Markdown, markdown)
    return types.MarkupContent(types.MarkupKind.PlainText, plain_text(markdown))


def escape_markdown(text: str) -> str:
    """Return plain text as Markdown, with all characters escaped that have a meaning there."""
    return re.sub(r"([\\`*_<>\[\]#|~])", r"\\\1", text)


def plain_text(markdown: str) -> str:
    """Remove the markup from Markdown written by apflint: escapes, code, bold text and links."""
    return _MARKUP.sub(_remove_markup, markdown)


def _remove_markup(match: re.Match[str]) -> str:
    if match["url"]:
        return f"{match['text']} ({match['url']})"
    return match["character"] or match["code"] or ""
