"""Lines of a text: where they begin and end, and those that belong to an entry in block style."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.edit import CannotEditError
from apflint.load.tree import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from apflint.load.tree import Node

# An anchor or a tag before a scalar, which libyaml counts in with it.
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_COMMENT_LINE = re.compile(r"([ \t]*)#[^\r\n]*(?:\r\n|\r|\n|\Z)")
_BLANK_LINE = re.compile(r"[ \t]*(?:\r\n|\r|\n)")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")


def line_end(text: str) -> str:
    """How the lines of a text end: as its first one does."""
    found = _LINE_END.search(text)
    return found.group() if found else "\n"


def line_start(text: str, at: int) -> int:
    """Where the line begins in which an offset is."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def body(text: str, node: Node) -> int:
    """Where a value starts, behind its anchor and tag."""
    found = _PROPERTIES.match(text, node.start, node.end)
    return found.end() if found else node.start


def entry_end(text: str, key: Scalar, value: Node) -> int:
    """Where an entry ends: one without a value behind its colon."""
    return value.end if value.end > key.end else text.find(":", key.end) + 1 or key.end


def begins_line(text: str, key: Scalar) -> str:
    """What stands before a key on its line: blanks, and dashes of lists. CannotEditError where something else does."""
    lead = text[line_start(text, key.start) : key.start]
    if lead.strip(" -"):
        raise CannotEditError("it shares a line with something else", key.start, key.end)
    return lead


def next_line(text: str, key: Scalar, value: Node) -> int:
    """Where the line begins that follows an entry. CannotEditError where the entry is not all of its last line."""
    at = entry_end(text, key, value)
    rest = _REST_OF_LINE.match(text, at)
    if rest is None:
        raise CannotEditError("it shares a line with something else", key.start, at)
    return rest.end()


def following(text: str, key: Scalar, value: Node, column: int) -> int:
    """Where the lines end that belong to an entry: with blank ones that may, and comments further in than its key."""
    at = next_line(text, key, value)
    if text.startswith(("|", ">"), body(text, _last(value))):
        while blank := _BLANK_LINE.match(text, at):  # of `|+` they are a part
            at = blank.end()
    while (comment := _COMMENT_LINE.match(text, at)) and len(comment[1]) > column:
        at = comment.end()
    return at


def above(text: str, line: int, column: int) -> int:
    """Where the comments begin that stand directly above a line, as far in as its key."""
    while line:
        previous = line_start(text, line - (2 if text.startswith("\r\n", line - 2) else 1))
        comment = _COMMENT_LINE.match(text, previous)
        if comment is None or len(comment[1]) != column:
            break
        line = previous
    return line


def _last(node: Node) -> Node:
    """The scalar or alias that a value in block style ends with."""
    while isinstance(node, Mapping | Sequence) and not node.flow:
        children = [value for _, value in node.pairs] if isinstance(node, Mapping) else node.items
        if not children:
            break
        node = children[-1]
    return node
