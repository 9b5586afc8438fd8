"""Converts between values of apflint and values of the Language Server Protocol: URIs, positions, ranges, edits, Markdown.

apflint counts lines and columns from 1, and columns in code points. The protocol counts from 0. Columns in the protocol
are UTF-16 code units, unless editor and server agree on UTF-8 or UTF-32 (LSP 3.17, `PositionEncodingKind`). Lines end
with LF, CRLF or CR, as in `Source`.
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
from apflint.edit_operations import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.load.source_text import Source
    from apflint.location import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_CODECS: dict[Encoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
"""The Python codec of each encoding, and the size of a code unit in bytes."""

ANY_FORMAT = (types.MarkupKind.Markdown, types.MarkupKind.PlainText)
"""The formats to use for an editor that does not report its supported formats."""
_MARKUP = re.compile(
    r"""\\(?P<character>[\\`*_<>\[\]#|~]) | (?P<fence>`+)[ ]?(?P<code>.+?)[ ]?(?P=fence) | \*\*
    | \[(?P<text>[^\]]*)\]\((?P<url>[^)]*)\)""",
    re.VERBOSE,
)


def path_from_uri(uri: str) -> str | None:
    """Return the path of a `file:` URI, or None if the URI has another scheme, has another host, or is invalid."""
    for character, escape in (("#", "%23"), (";", "%3B"), ("?", "%3F")):  # some editors do not escape these characters
        uri = uri.replace(character, escape)
    try:
        path = uris.to_fs_path(uri.replace("file://localhost/", "file:///", 1))
    except ValueError:
        return None
    if path is None or "\0" in path or "\N{REPLACEMENT CHARACTER}" in path:
        return None
    if os.name != "nt" and (not path.startswith("/") or path.startswith("//")):  # `//host/share` is not a local path
        return None
    return os.path.normpath(path)


def uri_from_path(path: str) -> str:
    """Return the `file:` URI of a path. Unlike `pygls.uris`, pathlib accepts file names that are not valid UTF-8."""
    return Path(os.path.abspath(path)).as_uri()


def is_untitled(uri: str) -> bool:
    """Return whether a document has no file yet."""
    return uri.startswith("untitled:")


def position_at(source: Source, offset: int, encoding: Encoding) -> types.Position:
    """Return the position of an offset in code points. Offsets outside of the text are moved to its start or end."""
    offset = min(max(offset, 0), len(source.text))
    line, column = source.position(offset)
    return types.Position(line - 1, _count_units(source.text[offset - column + 1 : offset], encoding))


def offset_at(source: Source, position: types.Position, encoding: Encoding) -> int:
    """Return the offset of a position. Positions behind the end of a line or of the text are moved to this end."""
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
    """Return the range of a span. A span contains lines and columns, counted from 1."""
    start, end = (
        types.Position(line - 1, _count_units(source.line(line)[: column - 1], encoding))
        for line, column in (span[:2], span[2:])
    )
    return types.Range(start, end)


def _count_units(text: str, encoding: Encoding) -> int:
    # Do not use PositionCodec of pygls: it counts characters one by one in Python, which takes seconds
    # for a long line of JSON.
    codec, size = _CODECS[encoding]
    return len(text) if text.isascii() else len(text.encode(codec, "surrogatepass")) // size


def line_edits(old: str, new: str) -> tuple[Edit, ...]:
    """Return edits of whole lines that turn `old` into `new`. The edits are small, but not always as small as possible."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, before))]
    return tuple(
        Edit(starts[change.start], starts[change.end], "".join(after[change.new_start : change.new_end]))
        for change in find_changes(before, after)
    )


def markup(markdown: str, formats: Sequence[types.MarkupKind]) -> types.MarkupContent:
    """Return `markdown` unchanged if the editor supports Markdown, or else as plain text.

    `formats` are the formats that the editor supports.
    """
    if types.MarkupKind.Markdown in formats:
        return types.MarkupContent(types.MarkupKind.Markdown, markdown)
    return types.MarkupContent(types.MarkupKind.PlainText, plain_text(markdown))


def escape_markdown(text: str) -> str:
    """Return plain text as Markdown. Characters with a meaning in Markdown are escaped."""
    return re.sub(r"([\\`*_<>\[\]#|~])", r"\\\1", text)


def plain_text(markdown: str) -> str:
    """Return Markdown without markup. Supports the markup that apflint writes: escapes, code, bold text and links."""
    return _MARKUP.sub(_remove_markup, markdown)


def _remove_markup(match: re.Match[str]) -> str:
    if match["url"]:
        return f"{match['text']} ({match['url']})"
    return match["character"] or match["code"] or ""
