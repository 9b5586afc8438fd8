"""Finds entries of mappings (a key and its value) and their lines in a YAML text.

Paths start at the root of the tree. Starts and ends are offsets into the text.
"""

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
    """Return start and end of the first alias or merge key (`<<: *x`) on `path`, or None if `path` contains neither."""
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
    """Return the mapping at `path`. Raises CannotEditError if the path does not lead to a mapping."""
    depth, _, node = walk(root, path)
    mapping = resolve_alias(node)
    if depth < len(path) or not isinstance(mapping, Mapping):
        raise CannotEditError("there is no such mapping", node.start)
    return mapping


def find_entry(root: Node, path: Path) -> tuple[Scalar, Node]:
    """Return key and value of the entry at `path`. Raises CannotEditError if the entry does not exist."""
    owner = find_mapping(root, path[:-1])
    entry = entries_of(owner).get(str(path[-1]))
    if entry is None:
        raise CannotEditError(f"there is no `{path[-1]}`", owner.start)
    return entry


def key_quote(text: str, key: Scalar) -> str:
    """Return the quotes of a key: `"` if the key is in double quotes (as in JSON), or else an empty string."""
    return '"' if text.startswith('"', value_start(text, key)) else ""


def line_end(text: str) -> str:
    """Return the line end (LF, CRLF or CR) of the first line, or LF if the text has no line end."""
    first = _LINE_END.search(text)
    return first.group() if first else "\n"


def line_start(text: str, offset: int) -> int:
    """Return the start of the line that contains `offset`."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_prefix(text: str, key: Scalar) -> str:
    """Return the spaces and list dashes before a key on its line. Raises CannotEditError if other text precedes the key."""
    prefix = text[line_start(text, key.start) : key.start]
    if prefix.strip(" -"):
        raise CannotEditError("the entry shares a line with other text", key.start)
    return prefix


def entry_end(text: str, key: Scalar, value: Node) -> int:
    """Return the end of an entry. An entry without a value ends after its colon."""
    return value.end if value.end > key.end else text.find(":", key.end) + 1 or key.end


def next_line_start(text: str, start: int, end: int) -> int:
    """Return the start of the line after `text[start:end]`.

    Raises CannotEditError if anything but a comment follows `text[start:end]` on the same line.
    """
    rest = _REST_OF_LINE.match(text, end)
    if rest is None:
        raise CannotEditError("the entry shares a line with other text", start)
    return rest.end()


def entry_lines_end(text: str, key: Scalar, value: Node, column: int) -> int:
    """Return the end of the last line of an entry. `column` is the column of the key, counted from 0.

    Comment lines below an entry belong to the entry if they start right of the key.
    """
    at = next_line_start(text, key.start, entry_end(text, key, value))
    if text.startswith(("|", ">"), value_start(text, _last_leaf(value))):
        while empty := _EMPTY_LINE.match(text, at):  # empty lines at the end may be part of a block scalar (`|+`)
            at = empty.end()
    while (comment := _COMMENT_LINE.match(text, at)) and len(comment[1]) > column:
        at = comment.end()
    return at


def comments_start(text: str, line: int, column: int) -> int:
    """Return the start of the comment lines directly above the line that starts at the offset `line`.

    Only comments that start at `column` count. Return `line` if there are no such comments.
    """
    while line:
        previous = line_start(text, line - (2 if text.startswith("\r\n", line - 2) else 1))
        comment = _COMMENT_LINE.match(text, previous)
        if comment is None or len(comment[1]) != column:
            break
        line = previous
    return line


def _last_leaf(node: Node) -> Node:
    """Return the last leaf of `node`: a scalar, an alias, or a collection in flow style (braces, brackets)."""
    while isinstance(node, Mapping | Sequence) and not node.flow:
        children = [value for _, value in node.pairs] if isinstance(node, Mapping) else node.items
        if not children:
            break
        node = children[-1]
    return node
