"""From the tree of a document to the plain value that Kubernetes decodes, with what it would complain of on the way.

Follows go-yaml v2 (`decode.go`): keys are compared before they become JSON keys, the merge key `<<` puts its keys in
like any other (so that overriding one is a duplicate), and aliases may only blow a document up so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.load.node import Alias, Mapping, Node, Scalar, Sequence, behind
from apflint.load.scalars import key_text

if TYPE_CHECKING:
    from apflint.finding import Path

# go-yaml decode.go, allowedAliasRatio: how much of a document may come from aliases, by the number of values decoded.
_RATIO_LOW, _RATIO_HIGH = 400_000, 4_000_000


class DecodeError(ValueError):
    """What makes go-yaml give the document up. `unsafe` is an alias bomb."""

    def __init__(self, message: str, node: Node, *, unsafe: bool = False) -> None:
        super().__init__(message)
        self.node = node
        self.unsafe = unsafe


class Duplicate(NamedTuple):
    """A key that one mapping has twice: `key` is the later one, `first` the earlier."""

    path: Path
    key: Scalar
    first: Scalar
    merged: bool


class Decoded(NamedTuple):
    """A decoded document. `not_finite`: paths of .inf and .nan, which JSON cannot hold."""

    value: Any
    duplicates: tuple[Duplicate, ...]
    not_finite: tuple[Path, ...]


def decode(node: Node) -> Decoded:
    """The value of a tree. Raises DecodeError."""
    decoder = _Decoder()
    value = decoder.value(node)
    return Decoded(value, tuple(decoder.duplicates), tuple(decoder.not_finite))


class _Decoder:
    def __init__(self) -> None:
        self.duplicates: list[Duplicate] = []
        self.not_finite: list[Path] = []
        self.path: list[str | int] = []
        self.decoded = 1  # the document node itself
        self.aliased = 0
        self.alias_depth = 0
        self.open: set[int] = set()

    def value(self, node: Node) -> Any:
        if node.__class__ is Scalar:
            self._count(node)
            value = node.value
            if value.__class__ is float and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
                self.not_finite.append(tuple(self.path))
            return value
        self._count(node)
        if isinstance(node, Mapping):
            return self._mapping(node)
        if isinstance(node, Sequence):
            items: list[Any] = []
            for number, item in enumerate(node.items):
                self.path.append(number)
                items.append(self.value(item))
                self.path.pop()
            return items
        assert isinstance(node, Alias)
        with _Expansion(self, node):
            return self.value(node.target)

    def _mapping(self, node: Mapping) -> dict[str, Any]:
        out: dict[str, Any] = {}
        seen: dict[tuple[type, Any], Scalar] = {}
        self._fill(node, out, seen, merged=False)
        return out

    def _fill(self, node: Mapping, out: dict[str, Any], seen: dict[tuple[type, Any], Scalar], *, merged: bool) -> None:
        merges = node.merges
        for number, (key, value) in enumerate(node.pairs):
            if merges:
                self._merge([m for m in merges if m[0] == number], out, seen)
            self._count(key)
            text = key_text(key.value)
            if text is None:
                raise DecodeError("a mapping key must be a word: Kubernetes has no other keys", key)
            identity = (key.value.__class__, key.value)
            self.path.append(text)
            if identity in seen:
                self.duplicates.append(Duplicate(tuple(self.path), key, seen[identity], merged))
            seen[identity] = key
            out[text] = self.value(value)
            self.path.pop()
        if merges:
            self._merge([m for m in merges if m[0] == len(node.pairs)], out, seen)

    def _merge(
        self, merges: list[tuple[int, Scalar, Node]], out: dict[str, Any], seen: dict[tuple[type, Any], Scalar]
    ) -> None:
        for _, key, value in merges:
            target = behind(value)
            # go-yaml takes a list of mappings from its end, so that the first one has the last word.
            for source in reversed(target.items) if isinstance(target, Sequence) else [value]:
                mapping = behind(source)
                if not isinstance(mapping, Mapping):
                    raise DecodeError("the merge key `<<` takes a mapping or a list of mappings", key)
                self._count(source)
                if isinstance(source, Alias):
                    with _Expansion(self, source):
                        self._count(mapping)
                        self._fill(mapping, out, seen, merged=True)
                else:
                    self._fill(mapping, out, seen, merged=True)

    def _count(self, node: Node) -> None:
        self.decoded += 1
        if not self.alias_depth:
            return
        self.aliased += 1
        if self.aliased > 100 and self.decoded > 1000 and self.aliased / self.decoded > _allowed(self.decoded):
            raise DecodeError(
                f"aliases blow this document up to more than {self.decoded:,} values: kube-apiserver refuses it",
                node,
                unsafe=True,
            )


class _Expansion:
    """Inside an alias: counts the depth, and refuses an anchor that contains itself."""

    def __init__(self, decoder: _Decoder, alias: Alias) -> None:
        self.decoder = decoder
        self.alias = alias

    def __enter__(self) -> None:
        target = id(self.alias.target)
        if target in self.decoder.open:
            raise DecodeError("this alias stands for a value that contains it", self.alias)
        self.decoder.open.add(target)
        self.decoder.alias_depth += 1

    def __exit__(self, *_: object) -> None:
        self.decoder.open.discard(id(self.alias.target))
        self.decoder.alias_depth -= 1


def _allowed(decoded: int) -> float:
    if decoded <= _RATIO_LOW:
        return 0.99
    if decoded >= _RATIO_HIGH:
        return 0.10
    return 0.99 - 0.89 * ((decoded - _RATIO_LOW) / (_RATIO_HIGH - _RATIO_LOW))
