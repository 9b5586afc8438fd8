"""Trees of YAML texts for tests of edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.load.yaml import parse_tree

if TYPE_CHECKING:
    from apflint.load.tree import Node


def parse(text: str) -> Node:
    """Return the tree of a text with one document."""
    root = parse_tree(text, 0, len(text))
    assert root is not None
    return root
