"""Finds mappings, entries and aliases in a tree. Paths start at its root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.edit.text_edits import CannotEditError
from apflint.load.tree import Alias, Mapping, Node, Scalar, entries_of, find_child, resolve_alias, walk

if TYPE_CHECKING:
    from apflint.location import Path


def find_alias(root: Node, path: Path) -> tuple[int, int] | None:
    """Return the offsets of the alias or merge key through which the value at `path` is shared, or None if it is not."""
    node = root
    for step in path:
        if isinstance(node, Alias):
            return node.start, node.end
        entry = find_child(node, step)
        if entry is None:
            return None
        if isinstance(node, Mapping) and not any(key is entry[0] for key, _ in node.pairs):
            _, merge_key, merged = node.merges[0]
            return merge_key.start, merged.end
        node = entry[1]
    return (node.start, node.end) if isinstance(node, Alias) else None


def find_mapping(root: Node, path: Path) -> Mapping:
    """Return the mapping at `path`. Raises CannotEditError if there is none."""
    depth, _, node = walk(root, path)
    mapping = resolve_alias(node)
    if depth < len(path) or not isinstance(mapping, Mapping):
        raise CannotEditError("there is no such mapping", node.start)
    return mapping


def find_entry(root: Node, path: Path) -> tuple[Scalar, Node]:
    """Return key and value of the entry at `path`. Raises CannotEditError if there is none."""
    owner = find_mapping(root, path[:-1])
    entry = entries_of(owner).get(str(path[-1]))
    if entry is None:
        raise CannotEditError(f"there is no `{path[-1]}`", owner.start)
    return entry
