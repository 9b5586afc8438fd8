"""Finds the comments in a YAML text that start with a given word, and the range that each comment applies to."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from apflint.load.tree import Mapping, Scalar, Sequence
from apflint.load.yaml import parse_documents
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load.source_text import Source
    from apflint.load.tree import Node

_BLOCK_SCALAR = re.compile(r"(?:[&!]\S*[ \t]+)*[|>]")
_COMMENT = re.compile(r"(?<![^\s])#[^\r\n]*")
_CONTENT = re.compile(r"^(?!---|%)[ \t]*([^\s#])", re.MULTILINE)


class Comment(NamedTuple):
    """A comment that starts with the searched word. `text` is the rest of the comment, and starts at the offset `text_start`."""

    start: int
    end: int
    text: str
    text_start: int
    scope: tuple[int, int]
    """The comment applies to the nodes that start in this range of offsets.

    If the comment follows a node on its line, the range is this line. Otherwise, the range is the range of the next node.
    """


class _Layout(NamedTuple):
    """The ranges of the scalars, objects, entries and documents of a text, which show where comments belong.

    A range is a pair of the start offset and the end offset.
    """

    scalars: list[tuple[int, int]]
    """Sorted ranges of scalars, in which `#` does not start a comment."""
    nodes: list[tuple[int, int]]
    """Sorted ranges of objects, mapping entries and list items. If ranges have the same start, the largest range is first."""
    multiline_starts: dict[int, int]
    """Start offset of each value that spans several lines. Keys are the numbers of their last lines, from 1."""
    documents: list[tuple[int, int]]
    """Content ranges of the documents that are not empty."""


def find_comments(source: Source, word: str) -> Iterator[Comment]:
    """Yield the comments that start with `word`, in order. Never raises an exception.

    In a document that cannot be parsed, only comments before its content are found, because later text may be part of a
    string.
    """
    pattern = re.compile(rf"(?<![^\s])#+[ \t]*{re.escape(word)}[ \t]*([^\r\n]*)")
    matches = list(pattern.finditer(source.text))
    if not matches:
        return
    layout = _find_layout(source, [match.start() for match in matches])
    for match in _find_outside(pattern, source.text, 0, len(source.text), layout.scalars):
        text = match[1].rstrip()
        scope = _find_scope(source, match.start(), layout)
        yield Comment(match.start(), match.start(1) + len(text), text, match.start(1), scope)


def list_comments(text: str, nodes: Iterable[Node], start: int, end: int) -> Iterator[str]:
    """Yield the text of each comment in `text[start:end]`, in order.

    `nodes` are the nodes that start in this range. A `#` inside their scalars does not start a comment.
    """
    scalars = sorted((_text_start(text, node), node.end) for node in _walk(nodes) if isinstance(node, Scalar))
    for match in _find_outside(_COMMENT, text, start, end, scalars):
        yield match.group().rstrip()


def _find_outside(
    pattern: re.Pattern[str], text: str, start: int, end: int, ranges: list[tuple[int, int]]
) -> Iterator[re.Match[str]]:
    """Yield the matches in `text[start:end]` whose start is in none of the sorted `ranges`."""
    while match := pattern.search(text, start, end):
        range_end = _find_range_end(match.start(), ranges)
        if range_end is None:
            yield match
        start = match.end() if range_end is None else range_end


def _walk(nodes: Iterable[Node]) -> Iterator[Node]:
    remaining = list(nodes)
    while remaining:
        node = remaining.pop()
        yield node
        if isinstance(node, Sequence):
            remaining += node.items
        elif isinstance(node, Mapping):
            remaining += (part for pair in _pairs(node) for part in pair)


def _pairs(node: Mapping) -> Iterator[tuple[Node, Node]]:
    yield from node.pairs
    yield from ((key, value) for _, key, value in node.merges)


def _find_range_end(offset: int, ranges: list[tuple[int, int]]) -> int | None:
    """Return the end of the range that contains an offset, or None if no range contains it."""
    at = bisect_right(ranges, (offset, len(ranges) and ranges[-1][1])) - 1
    return ranges[at][1] if at >= 0 and ranges[at][0] <= offset < ranges[at][1] else None


def _find_scope(source: Source, offset: int, layout: _Layout) -> tuple[int, int]:
    line, _ = source.position(offset)
    line_start = source.line_starts[line - 1]
    if source.text[line_start:offset].lstrip(" \t-")[:1] in ("", "#"):  # the comment is alone on its line
        at = bisect_right(layout.nodes, (offset, 0))
        # A comment after the last node of a document applies to no node, because the next document is another object.
        before = bisect_right(layout.documents, (offset, 0)) - 1
        document_end = layout.documents[before][1] if before >= 0 else 0
        if at < len(layout.nodes) and (offset >= document_end or layout.nodes[at][0] < document_end):
            return layout.nodes[at]
        return offset, offset
    line_end = source.line_starts[line] if line < len(source.line_starts) else len(source.text) + 1
    return min(line_start, layout.multiline_starts.get(line, line_start)), line_end


def _find_layout(source: Source, offsets: list[int]) -> _Layout:
    """Return one layout for all documents that contain comments.

    If a document with comments is empty, the layout includes the next document, because the comments apply to that
    document.

    `offsets` are the sorted start offsets of the comments.
    """
    is_next_wanted = False

    def is_wanted(start: int, end: int) -> bool:
        return is_next_wanted or bisect_left(offsets, start) < bisect_left(offsets, end)

    layout = _Layout([], [], {}, [])
    for document in parse_documents(source.text, is_wanted):
        is_next_wanted = document.error is None and document.root is None
        if document.error is not None:
            content = _CONTENT.search(source.text, document.start, document.end)
            start = content.start(1) if content else document.end
            for ranges in (layout.scalars, layout.nodes, layout.documents):
                ranges.append((start, document.end))
        elif document.root is not None:
            layout.documents.append((document.root.start, document.end))
            layout.nodes.append((document.root.start, max(document.root.end, document.root.start + 1)))
            _add_nodes(source, document.root, layout)
    layout.scalars.sort()
    layout.nodes.sort(key=lambda node: (node[0], -node[1]))
    return layout


def _add_nodes(source: Source, root: Node, layout: _Layout) -> None:
    for node in _walk([root]):
        if isinstance(node, Mapping):
            layout.nodes.extend((key.start, max(value.end, key.end)) for key, value in _pairs(node))
        elif isinstance(node, Sequence):
            layout.nodes.extend((item.start, max(item.end, item.start + 1)) for item in node.items)
        elif isinstance(node, Scalar):
            layout.scalars.append((_text_start(source.text, node), node.end))
        if isinstance(node, Scalar) or (isinstance(node, Mapping | Sequence) and node.flow):
            last_line, _ = source.position(node.end)
            starts = layout.multiline_starts
            starts[last_line] = min(node.start, starts.get(last_line, node.start))


def _text_start(text: str, node: Scalar) -> int:
    """Return the offset at which the text of a scalar starts. The text of a block scalar starts after the line of its `|`."""
    if _BLOCK_SCALAR.match(text, node.start, node.end):
        line_end = text.find("\n", node.start, node.end)
        return line_end if line_end >= 0 else node.end
    return node.start
