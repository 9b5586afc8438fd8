"""The tree of a document: values with their places, as offsets into the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from apflint.location import Path

Limit = Literal["server", "apflint"]
"""Whose limit a document is beyond that is not read: that of the API server's decoder, which refuses it, or ours."""


class Scalar:
    """A string, number, boolean or null; `value` is what Kubernetes decodes it to."""

    __slots__ = ("end", "start", "value")

    def __init__(self, start: int, end: int, value: object) -> None:
        self.start = start
        self.end = end
        self.value = value


class Mapping:
    """`merges` are the values of its `<<` keys, with the number of pairs before each: go-yaml takes them in order."""

    __slots__ = ("end", "flow", "merges", "pairs", "start", "table")

    def __init__(self, start: int, *, flow: bool) -> None:
        self.start = start
        self.end = -1
        self.flow = flow
        self.pairs: list[tuple[Scalar, Node]] = []
        self.merges: list[tuple[int, Scalar, Node]] = []
        self.table: dict[str | None, tuple[Scalar, Node]] | None = None
        """Its entries by their JSON key, merged ones included; made by `entries` when it is asked for."""


class Sequence:
    """A list."""

    __slots__ = ("end", "flow", "items", "start")

    def __init__(self, start: int, *, flow: bool) -> None:
        self.start = start
        self.end = -1
        self.flow = flow
        self.items: list[Node] = []


class Alias:
    """`*name`, with the node that it stands for."""

    __slots__ = ("end", "start", "target")

    def __init__(self, start: int, end: int, target: Node) -> None:
        self.start = start
        self.end = end
        self.target = target


Node = Scalar | Mapping | Sequence | Alias


def behind(node: Node) -> Scalar | Mapping | Sequence:
    """The node itself, or what an alias stands for."""
    while isinstance(node, Alias):
        node = node.target
    return node


def entries(node: Mapping) -> dict[str | None, tuple[Scalar, Node]]:
    """Key and value by the key's text in JSON: of a key that is there twice the last, and its own before merged ones."""
    if node.table is None:
        from apflint.load.scalars import key_text  # only findings come here

        node.table = table = {key_text(key.value): (key, value) for key, value in node.pairs}
        for _, _, merged in node.merges:
            target = behind(merged)
            for source in map(behind, target.items if isinstance(target, Sequence) else [target]):
                if isinstance(source, Mapping):
                    for key, entry in entries(source).items():
                        table.setdefault(key, entry)
    return node.table


def child(node: Node, step: str | int) -> tuple[Scalar | None, Node] | None:
    """One step down: the key (None in a list) and the value, or None where there is no such child."""
    node = behind(node)
    if isinstance(node, Sequence):
        return (None, node.items[step]) if isinstance(step, int) and step < len(node.items) else None
    return entries(node).get(step) if isinstance(node, Mapping) and isinstance(step, str) else None


def walk(node: Node, path: Path) -> tuple[int, Scalar | None, Node]:
    """As far down `path` as the tree goes: how many steps, the last step's key (None in a list), and the node there."""
    key: Scalar | None = None
    for depth, step in enumerate(path):
        found = child(node, step)
        if found is None:
            return depth, key, node
        key, node = found
    return len(path), key, node
