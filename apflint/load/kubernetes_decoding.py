"""Decodes the tree of a document as Kubernetes does, and collects duplicate keys and infinite numbers.

The decoder follows go-yaml v2 (`decode.go`). Keys are compared before they become JSON keys, so `1` and `"1"` are not
duplicates. A key that overrides a key from the merge key `<<` is a duplicate. The number of values from aliases is
limited.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_ALIAS_DEPTH, MAX_DUPLICATES
from apflint.load.scalars import json_key
from apflint.load.tree import Alias, Mapping, Node, ParseError, Scalar, Sequence, resolve_alias
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.load.tree import Limit, ParsedDocument
    from apflint.location import Path

# The more values a document has, the smaller is the fraction of values that may come from aliases (`allowedAliasRatio`
# in decode.go of go-yaml).
_LOW_COUNT, _HIGH_COUNT = 400_000, 4_000_000
_HIGH_RATIO, _LOW_RATIO = 0.99, 0.10

_Identity = tuple[type, Any]
"""Type and value of a key. go-yaml compares both, so that `1`, `1.0` and `"1"` are different keys."""


class Duplicate(NamedTuple):
    """A key that occurs twice in a mapping. `first` is the earlier occurrence, and `key` is the later occurrence."""

    path: Path
    key: Scalar
    first: Scalar
    merged: bool
    """Whether the later key comes from a merge key `<<`."""


class Decoded(NamedTuple):
    """The value of a decoded document, and the problems found while decoding."""

    value: object
    duplicates: tuple[Duplicate, ...]
    not_finite: tuple[Path, ...]
    """Paths of the values `.inf` and `.nan`, which JSON cannot represent."""


def decode(node: Node) -> Decoded:
    """Decode the tree of a document. Raises ParseError if go-yaml or apflint rejects the whole document."""
    decoder = _Decoder()
    value = decoder.decode(node)
    return Decoded(value, tuple(decoder.duplicates), tuple(decoder.not_finite))


def decode_document(document: ParsedDocument) -> Decoded:
    """Decode a document. The value of an empty document is None. Raises ParseError if the document cannot be read."""
    if document.error is not None:
        try:
            raise document.error
        finally:
            # Deleting the local variable avoids a reference cycle: error, traceback, this frame, document, error. A
            # million cycles would take gigabytes until a garbage collection.
            del document
    return Decoded(document.value, (), ()) if document.root is None else decode(document.root)


class _Decoder:
    """Decodes one document.

    Create a new decoder for each document: after an error, the state of the decoder is invalid.
    """

    def __init__(self) -> None:
        self.duplicates: list[Duplicate] = []
        self.not_finite: list[Path] = []
        self.path: list[str | int] = []
        self.depth = 0
        self.decoded = 1  # go-yaml also counts the document node
        self.aliased = 0
        self.expanding: set[Node] = set()
        """Targets of the aliases that are being expanded. An alias inside of its own target is an error."""

    def decode(self, node: Node) -> Any:
        self._count(node)
        if node.__class__ is Scalar:
            value = node.value
            if value.__class__ is float and not isfinite(value) and len(self.not_finite) < MAX_DUPLICATES:
                self.not_finite.append(tuple(self.path))
            return value
        self._descend(node)
        if isinstance(node, Mapping):
            decoded: Any = {}
            self._decode_into(node, decoded, {}, merged=False)
        elif isinstance(node, Sequence):
            decoded = self._decode_items(node)
        else:
            assert isinstance(node, Alias)
            self._expand(node)
            decoded = self.decode(node.target)
            self.expanding.discard(node.target)
        self.depth -= 1
        return decoded

    def _decode_items(self, node: Sequence) -> list[Any]:
        items: list[Any] = []
        self.path.append(0)
        for number, item in enumerate(node.items):
            self.path[-1] = number
            items.append(self.decode(item))
        self.path.pop()
        return items

    def _decode_into(
        self, node: Mapping, decoded: dict[str, Any], seen: dict[_Identity, Scalar], *, merged: bool
    ) -> None:
        merges = node.merges
        next_merge = 0
        for number, (key, value) in enumerate(node.pairs):
            while next_merge < len(merges) and merges[next_merge][0] == number:
                self._merge(merges[next_merge], decoded, seen)
                next_merge += 1
            self._count(key)
            name = json_key(key.value)
            if name is None:
                raise ParseError("a key must be a string, number or boolean in Kubernetes", key.start, key.end)
            identity = (key.value.__class__, key.value)
            self.path.append(name)
            if identity in seen and len(self.duplicates) < MAX_DUPLICATES:
                self.duplicates.append(Duplicate(tuple(self.path), key, seen[identity], merged))
            seen[identity] = key
            decoded[name] = self.decode(value)
            self.path.pop()
        for merge in merges[next_merge:]:
            self._merge(merge, decoded, seen)

    def _merge(self, merge: tuple[int, Scalar, Node], decoded: dict[str, Any], seen: dict[_Identity, Scalar]) -> None:
        _, key, value = merge
        # go-yaml merges a list of mappings from last to first, so that the first mapping takes precedence.
        for source in reversed(value.items) if isinstance(value, Sequence) else [value]:
            mapping = resolve_alias(source)
            if not isinstance(mapping, Mapping):
                raise ParseError("the merge key `<<` needs a mapping or a list of mappings", key.start, key.end)
            self._descend(source)
            self._count(source)
            if isinstance(source, Alias):
                self._expand(source)
                self._count(mapping)
            self._decode_into(mapping, decoded, seen, merged=True)
            if isinstance(source, Alias):
                self.expanding.discard(mapping)
            self.depth -= 1

    def _descend(self, node: Node) -> None:
        self.depth += 1
        if self.depth > MAX_ALIAS_DEPTH:
            raise _exceed(f"aliases nest this document more than {MAX_ALIAS_DEPTH} levels deep", node, "apflint")

    def _expand(self, alias: Alias) -> None:
        if alias.target in self.expanding:
            raise ParseError("this alias is inside the value that it refers to", alias.start, alias.end)
        self.expanding.add(alias.target)

    def _count(self, node: Node) -> None:
        self.decoded += 1
        if not self.expanding:
            return
        self.aliased += 1
        if self.aliased > 100 and self.decoded > 1000 and self.aliased / self.decoded > _allowed_ratio(self.decoded):
            raise _exceed(
                f"too many of the first {self.decoded:,} values of this document come from aliases", node, "server"
            )


def _exceed(message: str, node: Node, limit: Limit) -> ParseError:
    return ParseError(message, node.start, node.end, help="write the values instead of the aliases", limit=limit)


def _allowed_ratio(decoded: int) -> float:
    if decoded <= _LOW_COUNT:
        return _HIGH_RATIO
    if decoded >= _HIGH_COUNT:
        return _LOW_RATIO
    return _HIGH_RATIO - (_HIGH_RATIO - _LOW_RATIO) * ((decoded - _LOW_COUNT) / (_HIGH_COUNT - _LOW_COUNT))
