"""Finds fixes that would change other places as well, because an alias repeats the edited text."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit import operations
from apflint.edit.text_edits import CannotEditError
from apflint.load.tree import Alias, Mapping, Node, Sequence, resolve_alias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.finding import Finding
    from apflint.fix import Edit
    from apflint.load.document import Document
    from apflint.location import Path


class _Anchored(NamedTuple):
    """A node that aliases stand for: `text[start:end]`, and in how many places of its document it counts."""

    start: int
    end: int
    places: int
    """0 if unknown: an entry may be overridden where it is merged (`<<`)."""
    parent: int
    """The index of the next anchored node around it, or -1."""


def find_half_shared(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings whose edits would also change a place that none of the findings is about.

    An edit of an anchored value changes every place where an alias repeats it. That is right only if the same edit is
    wanted in all of them. Looks once at each document, however many findings there are.
    """
    wanted: dict[tuple[int, int, Edit], tuple[Document, set[Path], list[Finding]]] = {}
    for finding in findings:
        document, fix = finding.document, finding.fix
        if document is None or fix is None or "*" not in document.source.text:
            continue
        for operation in fix.operations:
            with suppress(CannotEditError):
                for edit in operations.text_edits(document, (operation,)):
                    key = id(document.source), document.start, edit
                    _, paths, owners = wanted.setdefault(key, (document, set(), []))
                    paths.add((*document.prefix, *operation.path))
                    owners.append(finding)
    anchored: dict[tuple[int, int], list[_Anchored]] = {}
    half: dict[int, Finding] = {}
    for (source, start, edit), (document, paths, owners) in wanted.items():
        if (source, start) not in anchored:
            anchored[source, start] = _find_anchored(document.root)
        if len(paths) < _count_places(anchored[source, start], edit):
            half |= {id(finding): finding for finding in owners}
    return list(half.values())


def _count_places(anchored: list[_Anchored], edit: Edit) -> int:
    """Return in how many places of a document an edited text counts, or 0 if unknown."""
    at = bisect_right(anchored, edit.start, key=lambda node: node.start) - 1
    while at >= 0 and anchored[at].end < edit.end:
        at = anchored[at].parent
    return anchored[at].places if at >= 0 else 1


def _find_anchored(root: Node) -> list[_Anchored]:
    """Return the anchored nodes of a tree, by their start."""
    written = list(_walk(root))
    aliased = [node for node in written if isinstance(node, Alias)]
    targets = {id(target): target for target in map(resolve_alias, aliased)}
    order = sorted(targets.values(), key=lambda node: (node.start, -node.end))
    index = {id(node): at for at, node in enumerate(order)}
    starts = [node.start for node in order]

    parents: list[int] = []
    for at, node in enumerate(order):
        parent = at - 1
        while parent >= 0 and order[parent].end < node.end:
            parent = parents[parent]
        parents.append(parent)

    def around(node: Node) -> int:
        at = bisect_right(starts, node.start) - 1
        while at >= 0 and order[at].end < node.end:
            at = parents[at]
        return at

    holders: list[list[int]] = [[] for _ in order]
    merged = _find_merged(written)
    unknown = set()
    for alias in aliased:
        target = index[id(resolve_alias(alias))]
        holders[target].append(around(alias))
        if id(alias) in merged:
            unknown.add(target)
    # Whatever contains a node, or an alias of it, ends behind it: the places of those are known first.
    places = [1 for _ in order]
    for at in sorted(range(len(order)), key=lambda at: (-order[at].end, order[at].start)):
        containers = [parents[at], *holders[at]]
        known = [1 if container < 0 else places[container] for container in containers]
        places[at] = 0 if at in unknown or 0 in known else sum(known)
    return [_Anchored(node.start, node.end, places[at], parents[at]) for at, node in enumerate(order)]


def _find_merged(written: Iterable[Node]) -> set[int]:
    """Return the ids of the aliases below `<<` keys whose entries may not all count where they are merged."""
    return {
        id(node)
        for mapping in written
        if isinstance(mapping, Mapping) and _overrides(mapping)
        for _, _, value in mapping.merges
        for node in _walk(value)
        if isinstance(node, Alias)
    }


def _overrides(mapping: Mapping) -> bool:
    """Whether a mapping may override what is merged into it: with a key of its own, or with another merge."""
    if len(mapping.merges) != 1:
        return bool(mapping.merges)
    merged = resolve_alias(mapping.merges[0][2])
    if not isinstance(merged, Mapping) or merged.merges:
        return True
    own = {str(key.value) for key, _ in mapping.pairs}
    return any(str(key.value) in own for key, _ in merged.pairs)


def _walk(root: Node) -> Iterator[Node]:
    """Yield all nodes as they are written: what an alias stands for is yielded once."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Mapping):
            for key, value in node.pairs:
                stack += (key, value)
            stack += (merged for _, _, merged in node.merges)
        elif isinstance(node, Sequence):
            stack += node.items
