"""The tree of a parsed document: nodes with their values, and their positions as offsets into the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.load.scalars import json_key
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.location import Path

Limit = Literal["server", "apflint"]
"""Limit that a document exceeds. `server`: the API server rejects the document, too. `apflint`: only apflint rejects
the document."""


class Scalar:
    """A string, number, boolean or null. `value` is the Python value, decoded as in Kubernetes."""

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
        """The merge keys `<<`, in order: the number of pairs before the merge key, its node, and its value."""
        self.entries: dict[str | None, tuple[Scalar, Node]] | None = None
        """Cached result of `entries_of`, or None before the first call."""


class Sequence:
    """A list, in block or flow style."""

    __slots__ = ("end", "flow", "items", "start")

    def __init__(self, start: int, *, flow: bool) -> None:
        self.start = start
        self.end = -1
        self.flow = flow
        self.items: list[Node] = []


class Alias:
    """An alias `*name`. `target` is the node with the anchor `&name`."""

    __slots__ = ("end", "start", "target")

    def __init__(self, start: int, end: int, target: Node) -> None:
        self.start = start
        self.end = end
        self.target = target


Node = Scalar | Mapping | Sequence | Alias


class ParseError(Exception):
    """Raised if the text at the offsets `start` to `end` is invalid YAML or JSON, or exceeds a limit."""

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
        """The limit that the document exceeds, or None if the text is invalid."""


class ParsedDocument(NamedTuple):
    """A document in `text[start:end]` of a YAML or JSON stream.

    A document that is not empty has a tree, a value or an error.
    """

    start: int
    end: int
    root: Node | None
    error: ParseError | None = None
    value: object = None
    """The decoded value, if the parser did not build a tree. Otherwise None."""


def resolve_alias(node: Node) -> Scalar | Mapping | Sequence:
    """Return the target of an alias. Return every other node itself."""
    while isinstance(node, Alias):
        node = node.target
    return node


def entries_of(mapping: Mapping) -> dict[str | None, tuple[Scalar, Node]]:
    """Return the entries of a mapping after decoding, as a mapping from JSON keys to (key node, value node).

    If a key occurs twice, the last entry is used. Keys of the mapping override keys from the merge keys `<<`.
    """
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
    """Return the key node (None in a list) and the value node of the child at `step`, or None if there is no such child."""
    node = resolve_alias(node)
    if isinstance(node, Sequence):
        return (None, node.items[step]) if isinstance(step, int) and step < len(node.items) else None
    return entries_of(node).get(step) if isinstance(node, Mapping) and isinstance(step, str) else None


def walk(node: Node, path: Path) -> tuple[int, Scalar | None, Node]:
    """Follow `path` to its node, or to the last node that exists.

    Return the number of steps that exist, the key of the found node (None for a root or list item), and the node.
    """
    key: Scalar | None = None
    for depth, step in enumerate(path):
        child = find_child(node, step)
        if child is None:
            return depth, key, node
        key, node = child
    return len(path), key, node
