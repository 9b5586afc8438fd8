"""Lines of a text: where they start and end, and which belong to an entry in block style."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.edit.text_edits import CannotEditError
from apflint.fixes.yaml_values import value_start
from apflint.load.tree import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from apflint.load.tree import Node

_LINE_END = re.compile(r"\r\n|\r|\n")
_COMMENT_LINE = re.compile(r"([ \t]*)#[^\r\n]*(?:\r\n|\r|\n|\Z)")
_EMPTY_LINE = re.compile(r"[ \t]*(?:\r\n|\r|\n)")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")


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


def next_line_start(text: str, key: Scalar, value: Node) -> int:
    """Return the offset of the line after an entry.

    Raises CannotEditError if something other than a comment follows the entry on its last line.
    """
    end = entry_end(text, key, value)
    rest = _REST_OF_LINE.match(text, end)
    if rest is None:
        raise CannotEditError("it shares a line with something else", key.start)
    return rest.end()


def entry_lines_end(text: str, key: Scalar, value: Node, column: int) -> int:
    """Return the offset after the lines of an entry, including comments that are indented deeper than its key."""
    at = next_line_start(text, key, value)
    if text.startswith(("|", ">"), value_start(text, _last_leaf(value))):
        while empty := _EMPTY_LINE.match(text, at):  # a part of a `|+` scalar
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
