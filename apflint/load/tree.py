"""The tree of a parsed document: values with their positions, as offsets into the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.load.scalars import json_key
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.location import Path

Limit = Literal["server", "apflint"]
"""Whose limit a document exceeds: that of the API server, which rejects it, or that of apflint."""


class Scalar:
    """A string, number, boolean or null; `value` is what Kubernetes decodes it to."""

    __slots__ = ("end", "start", "value")

    def __init__(self, start: int, end: int, value: object) -> None:
        self.start = start
        self.end = end
        self.value = value


class Mapping:
    """A mapping, in block or flow style."""

    __slots__ = ("end", "entries", "flow", "merges", "pairs", "start")

    def __init__(self, start: int, *, flow: bool) -> None:
        self.start = start
        self.end = -1
        self.flow = flow
        self.pairs: list[tuple[Scalar, Node]] = []
        self.merges: list[tuple[int, Scalar, Node]] = []
        """The `<<` keys with their values, and the number of pairs before each: go-yaml evaluates them in order."""
        self.entries: dict[str | None, tuple[Scalar, Node]] | None = None
        """Cache of `entries_of`."""


class Sequence:
    """A list, in block or flow style."""

    __slots__ = ("end", "flow", "items", "start")

    def __init__(self, start: int, *, flow: bool) -> None:
        self.start = start
        self.end = -1
        self.flow = flow
        self.items: list[Node] = []


class Alias:
    """`*name`, with the node that has the anchor `&name`."""

    __slots__ = ("end", "start", "target")

    def __init__(self, start: int, end: int, target: Node) -> None:
        self.start = start
        self.end = end
        self.target = target


Node = Scalar | Mapping | Sequence | Alias


class ParseError(Exception):
    """Text that is not valid YAML or JSON, or that Kubernetes or apflint does not read, at the offsets `start` to `end`."""

    def __init__(
        self,
        message: str,
        start: int,
        end: int | None = None,
        *,
        help: str | None = None,  # noqa: A002  # the name of the part of a diagnostic
        limit: Limit | None = None,
    ) -> None:
        super().__init__(message)
        self.start = start
        self.end = start + 1 if end is None else end
        self.help = help
        self.limit = limit
        """The limit that the document exceeds; None if the text is invalid."""


class ParsedDocument(NamedTuple):
    """A document of a YAML or JSON stream: `text[start:end]` contains it. It has a tree, a value or an error, or is empty."""

    start: int
    end: int
    root: Node | None
    error: ParseError | None = None
    value: object = None
    """The decoded value, if it was read without a tree."""


def resolve_alias(node: Node) -> Scalar | Mapping | Sequence:
    """Return the node itself, or the one that an alias refers to."""
    while isinstance(node, Alias):
        node = node.target
    return node


def entries_of(mapping: Mapping) -> dict[str | None, tuple[Scalar, Node]]:
    """Return key and value by JSON key: of duplicate keys the last, and own keys before merged ones."""
    if mapping.entries is None:
        mapping.entries = entries = {json_key(key.value): (key, value) for key, value in mapping.pairs}
        for _, _, merged in mapping.merges:
            target = resolve_alias(merged)
            for source in map(resolve_alias, target.items if isinstance(target, Sequence) else [target]):
                if isinstance(source, Mapping):
                    for key, entry in entries_of(source).items():
                        entries.setdefault(key, entry)
    return mapping.entries


def find_child(node: Node, step: str | int) -> tuple[Scalar | None, Node] | None:
    """Return the key (None in a list) and the value one step below a node, or None if there is no such child."""
    node = resolve_alias(node)
    if isinstance(node, Sequence):
        return (None, node.items[step]) if isinstance(step, int) and step < len(node.items) else None
    return entries_of(node).get(step) if isinstance(node, Mapping) and isinstance(step, str) else None


def walk(node: Node, path: Path) -> tuple[int, Scalar | None, Node]:
    """Follow `path` as far as the tree goes. Returns the number of steps, the key of the last (None in a list), and the node."""
    key: Scalar | None = None
    for depth, step in enumerate(path):
        child = find_child(node, step)
        if child is None:
            return depth, key, node
        key, node = child
    return len(path), key, node
