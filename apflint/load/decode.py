"""From the tree of a document to the plain value that Kubernetes decodes, with what it would complain of on the way.

Follows go-yaml v2 (`decode.go`): keys are compared before they become JSON keys, the merge key `<<` puts its keys in
like any other (so that overriding one is a duplicate), and aliases may only blow a document up so far.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_FINDINGS_PER_RULE
from apflint.load.scalars import key_text
from apflint.load.tree import Alias, Mapping, Node, Scalar, Sequence, behind
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.load.tree import Limit
    from apflint.location import Path

# go-yaml decode.go, allowedAliasRatio: how much of a document may come from aliases, by the number of values decoded.
_RATIO_LOW, _RATIO_HIGH = 400_000, 4_000_000
# Levels of values, aliases and merges inside each other: more than text may nest (MAX_DEPTH), and well within Python's stack.
_MAX_DEPTH = 300
# Of the duplicates and of the infinite numbers of one document: more than are told, so that it is known that there are more.
_MOST = 2 * MAX_FINDINGS_PER_RULE

_Identity = tuple[type, Any]
"""What go-yaml compares keys by: `1`, `1.0` and `"1"` are three."""


class DecodeError(ValueError):
    """What makes go-yaml give the document up; `limit` where it is beyond one, and whose that is."""

    def __init__(self, message: str, node: Node, limit: Limit | None = None) -> None:
        super().__init__(message)
        self.node = node
        self.limit = limit


class Duplicate(NamedTuple):
    """A key that one mapping has twice: `key` is the later one, `first` the earlier."""

    path: Path
    key: Scalar
    first: Scalar
    merged: bool


class Decoded(NamedTuple):
    """A decoded document. `not_finite`: paths of .inf and .nan, which JSON cannot hold."""

    value: object
    duplicates: tuple[Duplicate, ...]
    not_finite: tuple[Path, ...]


def decode(node: Node) -> Decoded:
    """The value of a tree. Raises DecodeError."""
    decoder = _Decoder()
    value = decoder.value(node)
    return Decoded(value, tuple(decoder.duplicates), tuple(decoder.not_finite))


class _Decoder:
    """Any error ends the decoding, so nothing is put back on the way out of one."""

    def __init__(self) -> None:
        self.duplicates: list[Duplicate] = []
        self.not_finite: list[Path] = []
        self.path: list[str | int] = []
        self.depth = 0
        self.decoded = 1  # the document node itself
        self.aliased = 0
        self.open: set[int] = set()
        """The targets of the aliases that are being expanded."""

    def value(self, node: Node) -> Any:
        self._count(node)
        if node.__class__ is Scalar:
            value = node.value
            if value.__class__ is float and not isfinite(value) and len(self.not_finite) < _MOST:
                self.not_finite.append(tuple(self.path))
            return value
        self._descend(node)
        if isinstance(node, Mapping):
            out: dict[str, Any] = {}
            self._fill(node, out, {}, merged=False)
        elif isinstance(node, Sequence):
            out = self._items(node)
        else:
            assert isinstance(node, Alias)
            self._open(node)
            out = self.value(node.target)
            self.open.discard(id(node.target))
        self.depth -= 1
        return out

    def _items(self, node: Sequence) -> Any:
        items: list[Any] = []
        self.path.append(0)
        for number, item in enumerate(node.items):
            self.path[-1] = number
            items.append(self.value(item))
        self.path.pop()
        return items

    def _fill(self, node: Mapping, out: dict[str, Any], seen: dict[_Identity, Scalar], *, merged: bool) -> None:
        merges = node.merges
        taken = 0
        for number, (key, value) in enumerate(node.pairs):
            while taken < len(merges) and merges[taken][0] == number:
                self._merge(merges[taken], out, seen)
                taken += 1
            self._count(key)
            text = key_text(key.value)
            if text is None:
                raise DecodeError("a mapping key must be a word: Kubernetes has no other keys", key)
            identity = (key.value.__class__, key.value)
            self.path.append(text)
            if identity in seen and len(self.duplicates) < _MOST:
                self.duplicates.append(Duplicate(tuple(self.path), key, seen[identity], merged))
            seen[identity] = key
            out[text] = self.value(value)
            self.path.pop()
        for merge in merges[taken:]:
            self._merge(merge, out, seen)

    def _merge(self, merge: tuple[int, Scalar, Node], out: dict[str, Any], seen: dict[_Identity, Scalar]) -> None:
        _, key, value = merge
        # go-yaml takes a list of mappings from its end, so that the first one has the last word.
        for source in reversed(value.items) if isinstance(value, Sequence) else [value]:
            mapping = behind(source)
            if not isinstance(mapping, Mapping):
                raise DecodeError("the merge key `<<` takes a mapping or a list of mappings", key)
            self._descend(source)
            self._count(source)
            if isinstance(source, Alias):
                self._open(source)
                self._count(mapping)
            self._fill(mapping, out, seen, merged=True)
            if isinstance(source, Alias):
                self.open.discard(id(mapping))
            self.depth -= 1

    def _descend(self, node: Node) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise DecodeError(f"aliases nest this document more than {_MAX_DEPTH} levels deep", node, "apflint")

    def _open(self, alias: Alias) -> None:
        if id(alias.target) in self.open:
            raise DecodeError("this alias stands for a value that contains it", alias)
        self.open.add(id(alias.target))

    def _count(self, node: Node) -> None:
        self.decoded += 1
        if not self.open:
            return
        self.aliased += 1
        if self.aliased > 100 and self.decoded > 1000 and self.aliased / self.decoded > _allowed(self.decoded):
            raise DecodeError(
                f"aliases expand this document to more than {self.decoded:,} values, and kube-apiserver rejects it. Write the"
                " values instead of aliases",
                node,
                "server",
            )


def _allowed(decoded: int) -> float:
    if decoded <= _RATIO_LOW:
        return 0.99
    if decoded >= _RATIO_HIGH:
        return 0.10
    return 0.99 - 0.89 * ((decoded - _RATIO_LOW) / (_RATIO_HIGH - _RATIO_LOW))
