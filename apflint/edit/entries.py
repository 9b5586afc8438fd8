"""Entries of mappings in a text: finds them in the tree, and their lines in the text. Paths start at the root of the tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.edit.text_edits import CannotEditError
from apflint.fixes.yaml_values import value_start
from apflint.load.tree import Alias, Mapping, Scalar, Sequence, entries_of, find_child, resolve_alias, walk

if TYPE_CHECKING:
    from apflint.load.tree import Node
    from apflint.location import Path

_LINE_END = re.compile(r"\r\n|\r|\n")
_COMMENT_LINE = re.compile(r"([ \t]*)#[^\r\n]*(?:\r\n|\r|\n|\Z)")
_EMPTY_LINE = re.compile(r"[ \t]*(?:\r\n|\r|\n)")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")


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


def key_quote(text: str, key: Scalar) -> str:
    """Return the quote of a key, which new keys beside it use as well: in JSON it is required."""
    return '"' if text.startswith('"', value_start(text, key)) else ""


def line_end(text: str) -> str:
    """Return the line end of the first line, which new lines use as well."""
    first = _LINE_END.search(text)
    return first.group() if first else "\n"


def line_start(text: str, offset: int) -> int:
    """Return the offset at which the line of an offset starts."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_prefix(text: str, key: Scalar) -> str:
    """Return the spaces and the dashes of lists before a key on its line.

    Raises CannotEditError if something else precedes the key.
    """
    prefix = text[line_start(text, key.start) : key.start]
    if prefix.strip(" -"):
        raise CannotEditError("it shares a line with something else", key.start)
    return prefix


def entry_end(text: str, key: Scalar, value: Node) -> int:
    """Return the offset at which an entry ends: after its colon if it has no value."""
    return value.end if value.end > key.end else text.find(":", key.end) + 1 or key.end


def next_line_start(text: str, start: int, end: int) -> int:
    """Return the offset of the line after `text[start:end]`.

    Raises CannotEditError if something other than a comment follows it on its last line.
    """
    rest = _REST_OF_LINE.match(text, end)
    if rest is None:
        raise CannotEditError("it shares a line with something else", start)
    return rest.end()


def entry_lines_end(text: str, key: Scalar, value: Node, column: int) -> int:
    """Return the offset after the lines of an entry, including comments that are indented deeper than its key."""
    at = next_line_start(text, key.start, entry_end(text, key, value))
    if text.startswith(("|", ">"), value_start(text, _last_leaf(value))):
        while empty := _EMPTY_LINE.match(text, at):  # these may belong to the block scalar (`|+`)
            at = empty.end()
    while (comment := _COMMENT_LINE.match(text, at)) and len(comment[1]) > column:
        at = comment.end()
    return at


def comments_start(text: str, line: int, column: int) -> int:
    """Return the offset of the comments directly above a line that are indented like its key."""
    while line:
        previous = line_start(text, line - (2 if text.startswith("\r\n", line - 2) else 1))
        comment = _COMMENT_LINE.match(text, previous)
        if comment is None or len(comment[1]) != column:
            break
        line = previous
    return line


def _last_leaf(node: Node) -> Node:
    """Return the last scalar, alias or flow collection of a value in block style."""
    while isinstance(node, Mapping | Sequence) and not node.flow:
        children = [value for _, value in node.pairs] if isinstance(node, Mapping) else node.items
        if not children:
            break
        node = children[-1]
    return node
