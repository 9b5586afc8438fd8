"""Comments of a YAML text that begin with a word of ours, and the node that each is about."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from apflint.load import yaml
from apflint.load.tree import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load.source import Source
    from apflint.load.tree import Node

_BLOCK_SCALAR = re.compile(r"(?:[&!]\S*[ \t]+)*[|>]")
_ANY = re.compile(r"(?<![^\s])#[^\r\n]*")
_CONTENT = re.compile(r"^(?!---|%)[ \t]*([^\s#])", re.MULTILINE)


class Comment(NamedTuple):
    """A comment. Offsets are those of the source; `text` is what follows the word, from `text_start` on."""

    start: int
    end: int
    text: str
    text_start: int
    scope: tuple[int, int]
    """What it is about: of a comment that trails a line, where what starts on the line starts; else the next node."""


class _Places(NamedTuple):
    hidden: list[tuple[int, int]]
    """The text of scalars, in which `#` starts no comment; sorted."""
    nodes: list[tuple[int, int]]
    """Objects, entries and list items, sorted: of those that start at one place the largest comes first."""
    tails: dict[int, int]
    """Of a value of several lines that ends on a line: the line, and the offset of its start."""
    documents: list[tuple[int, int]]
    """Start of the content and end of each document that has any."""


def comments(source: Source, word: str) -> Iterator[Comment]:
    """The comments that begin with `word`, in order. Never raises.

    Of a document that cannot be read only the comments before its content are known to be comments.
    """
    pattern = re.compile(rf"(?<![^\s])#+[ \t]*{re.escape(word)}[ \t]*([^\r\n]*)")
    found = list(pattern.finditer(source.text))
    if not found:
        return
    places = _places(source, [match.start() for match in found])
    for match in found:
        start, end = match.start(), match.start(1) + len(match[1].rstrip())
        if not _is_hidden(start, places.hidden):
            scope = _scope(source, start, places)
            yield Comment(start, end, match[1].rstrip(), match.start(1), scope)


def within(text: str, nodes: Iterable[Node], start: int, end: int) -> Iterator[str]:
    """All comments of `text[start:end]`, in order; `nodes` are those that begin there."""
    hidden = sorted((_text_start(text, node), node.end) for node in _scalars(nodes))
    for match in _ANY.finditer(text, start, end):
        if not _is_hidden(match.start(), hidden):
            yield match.group().rstrip()


def _scalars(nodes: Iterable[Node]) -> Iterator[Scalar]:
    left = list(nodes)
    while left:
        node = left.pop()
        if isinstance(node, Scalar):
            yield node
        elif isinstance(node, Sequence):
            left += node.items
        elif isinstance(node, Mapping):
            left += (part for key, value in node.pairs for part in (key, value))
            left += (part for _, key, value in node.merges for part in (key, value))


def _is_hidden(offset: int, hidden: list[tuple[int, int]]) -> bool:
    at = bisect_right(hidden, (offset, len(hidden) and hidden[-1][1])) - 1
    return at >= 0 and hidden[at][0] <= offset < hidden[at][1]


def _scope(source: Source, offset: int, places: _Places) -> tuple[int, int]:
    line, _ = source.position(offset)
    line_start = source.line_starts[line - 1]
    if source.text[line_start:offset].lstrip(" \t-")[:1] in ("", "#"):
        at = bisect_right(places.nodes, (offset, 0))
        # What follows the last node of a document is about nothing: the next document is another object.
        before = bisect_right(places.documents, (offset, 0)) - 1
        end = places.documents[before][1] if before >= 0 else 0
        inside = offset < end
        if at < len(places.nodes) and not (inside and places.nodes[at][0] >= end):
            return places.nodes[at]
        return offset, offset
    line_end = source.line_starts[line] if line < len(source.line_starts) else len(source.text) + 1
    return min(line_start, places.tails.get(line, line_start)), line_end


def _places(source: Source, offsets: list[int]) -> _Places:
    """What is needed of the text to know about comments at these offsets, in order.

    That is the documents that they are in, and of those that are empty the next one that is not.
    """
    next_as_well = False

    def wanted(start: int, end: int) -> bool:
        return next_as_well or bisect_left(offsets, start) < bisect_left(offsets, end)

    hidden: list[tuple[int, int]] = []
    nodes: list[tuple[int, int]] = []
    tails: dict[int, int] = {}
    begun: list[tuple[int, int]] = []
    for document in yaml.documents(source.text, wanted):
        next_as_well = document.error is None and document.root is None
        if document.error is not None:
            content = _CONTENT.search(source.text, document.start, document.end)
            start = content.start(1) if content else document.end
            hidden.append((start, document.end))
            nodes.append((start, document.end))
            begun.append((start, document.end))
        elif document.root is not None:
            begun.append((document.root.start, document.end))
            nodes.append((document.root.start, max(document.root.end, document.root.start + 1)))
            _tree(source, document.root, _Places(hidden, nodes, tails, begun))
    hidden.sort()
    nodes.sort(key=lambda node: (node[0], -node[1]))
    return _Places(hidden, nodes, tails, begun)


def _tree(source: Source, root: Node, places: _Places) -> None:
    left: list[Node] = [root]
    while left:
        node = left.pop()
        if isinstance(node, Mapping):
            for key, value in (*node.pairs, *((key, value) for _, key, value in node.merges)):
                places.nodes.append((key.start, max(value.end, key.end)))
                left += (key, value)
        elif isinstance(node, Sequence):
            places.nodes.extend((item.start, max(item.end, item.start + 1)) for item in node.items)
            left += node.items
        elif isinstance(node, Scalar):
            places.hidden.append((_text_start(source.text, node), node.end))
        if isinstance(node, Scalar) or (isinstance(node, Mapping | Sequence) and node.flow):
            last, _ = source.position(node.end)
            places.tails[last] = min(node.start, places.tails.get(last, node.start))


def _text_start(text: str, node: Scalar) -> int:
    """Where the text of a scalar starts: after the line of a block scalar's `|`, on which a comment may stand."""
    if _BLOCK_SCALAR.match(text, node.start, node.end):
        line_end = text.find("\n", node.start, node.end)
        return line_end if line_end >= 0 else node.end
    return node.start
