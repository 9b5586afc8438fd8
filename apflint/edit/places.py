"""Edits of keys and values in a document: block or flow style, YAML or JSON, quoted or not.

Each function returns edits whose outcome the caller has to check by reading the text again: a value may be shared through
an anchor, and an edit of it then changes other places as well. Paths are from the root of the text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from apflint.edit import Edit
from apflint.load.node import Alias, Mapping, Node, Scalar, behind, child, entries, walk

if TYPE_CHECKING:
    from apflint.finding import Path

# An anchor or a tag before a scalar, which libyaml counts in with it.
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")


class CannotEditError(ValueError):
    """Why a place cannot be edited, as a sentence without its end; it is `text[start:end]`."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


def replaced(text: str, root: Node, path: Path, old: str, new: str) -> Edit:
    """The value at `path`, a text that holds `old`, with `new` in its place; its quotes stay."""
    return _replaced(text, _scalar(root, path), old, new)


def renamed(text: str, root: Node, path: Path, new: str) -> Edit:
    """The key of the value at `path` named `new`."""
    return _replaced(text, _entry(root, path)[0], str(path[-1]), new)


def number(text: str, root: Node, path: Path, new: int) -> Edit:
    """The value at `path` written as a number."""
    scalar = _scalar(root, path)
    start = _body(text, scalar)
    gap = " " if start == scalar.end and text[start - 1 : start] not in ("", " ", "\t", "\n") else ""
    return Edit(start, scalar.end, f"{gap}{new}")


def inserted(text: str, root: Node, path: Path, value: int) -> Edit:
    """A new key before the others of its mapping. CannotEditError where the mapping has no keys and is no `{}`."""
    mapping = _mapping(root, path[:-1])
    name = str(path[-1])
    if not mapping.pairs:
        at = text.find("{", mapping.start, mapping.end) + 1
        if not mapping.flow or not at or mapping.merges:
            raise CannotEditError(f"there is no place for `{name}: {value}`", mapping.start, mapping.end)
        return Edit(at, at, f'"{name}": {value}')
    first = mapping.pairs[0][0]
    if mapping.merges and mapping.merges[0][0] == 0:
        first = min(first, mapping.merges[0][1], key=lambda key: key.start)
    quoted = f'"{name}"' if text[first.start : first.start + 1] == '"' else name
    if mapping.flow:
        return Edit(first.start, first.start, f"{quoted}: {value},{_gap(text, first.start)}")
    line = _line_start(text, first.start)
    before = text[line : first.start]
    if before.strip(" -"):
        raise CannotEditError("its first key does not begin a line", first.start, first.end)
    return Edit(first.start, first.start, f"{quoted}: {value}{line_end(text)}{' ' * len(before)}")


def removed(text: str, root: Node, path: Path) -> Edit:
    """Without the entry at `path`: in block style its whole lines, in flow style with its comma.

    An entry that was alone in its mapping takes the mapping's own entry with it.
    """
    mapping = _mapping(root, path[:-1])
    key, value = _entry(root, path)
    index = next((at for at, pair in enumerate(mapping.pairs) if pair[0] is key), None)
    if index is None:
        raise CannotEditError(f"`{path[-1]}` comes from another place through a merge key", mapping.start, mapping.end)
    if len(mapping.pairs) == 1 and not mapping.merges and len(path) > 1:
        if not isinstance(_entry(root, path[:-1])[1], Alias):
            return removed(text, root, path[:-1])
        raise CannotEditError("it is shared through an alias", mapping.start, mapping.end)
    if not mapping.flow:
        return _lines(text, key, value)
    if index + 1 < len(mapping.pairs):
        return Edit(key.start, mapping.pairs[index + 1][0].start, "")
    if index:
        return Edit(mapping.pairs[index - 1][1].end, value.end, "")
    raise CannotEditError("it stands beside a merge key", key.start, value.end)


def shared(root: Node, path: Path) -> tuple[int, int] | None:
    """The alias or the merge key through which the value at `path` comes from another place; None where it does not."""
    node = root
    for step in path:
        if isinstance(node, Alias):
            return node.start, node.end
        found = child(node, step)
        if found is None:
            return None
        if isinstance(node, Mapping) and not any(pair[0] is found[0] for pair in node.pairs):
            return node.merges[0][1].start, node.merges[0][2].end
        node = found[1]
    return (node.start, node.end) if isinstance(node, Alias) else None


def line_end(text: str) -> str:
    """How the lines of a text end: as its first one does."""
    found = _LINE_END.search(text)
    return found.group() if found else "\n"


def _lines(text: str, key: Scalar, value: Node) -> Edit:
    start = _line_start(text, key.start)
    rest = _REST_OF_LINE.match(text, max(value.end, key.end + text[key.end :].find(":") + 1))
    if text[start : key.start].strip(" ") or rest is None:
        raise CannotEditError("it shares a line with something else", key.start, value.end)
    return Edit(start, rest.end(), "")


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _gap(text: str, at: int) -> str:
    """What stands before the first key of a flow mapping: a new line with its indentation, or one blank."""
    before = text[_line_start(text, at) : at]
    return " " if before.strip() else line_end(text) + before


def _replaced(text: str, scalar: Scalar, old: str, new: str) -> Edit:
    body = _body(text, scalar)
    at = text.rfind(old, body, scalar.end)
    if at >= 0:
        return Edit(at, at + len(old), new)
    # Written with escapes or over several lines: once more, and plainly.
    return Edit(body, scalar.end, json.dumps(str(scalar.value).replace(old, new), ensure_ascii=False))


def _body(text: str, scalar: Scalar) -> int:
    found = _PROPERTIES.match(text, scalar.start, scalar.end)
    return found.end() if found else scalar.start


def _mapping(root: Node, path: Path) -> Mapping:
    depth, _, node = walk(root, path)
    mapping = behind(node)
    if depth < len(path) or not isinstance(mapping, Mapping):
        raise CannotEditError("there is no such mapping", node.start, node.end)
    return mapping


def _entry(root: Node, path: Path) -> tuple[Scalar, Node]:
    mapping = _mapping(root, path[:-1])
    found = entries(mapping).get(str(path[-1]))
    if found is None:
        raise CannotEditError(f"there is no `{path[-1]}`", mapping.start, mapping.end)
    return found


def _scalar(root: Node, path: Path) -> Scalar:
    node = behind(_entry(root, path)[1])
    if not isinstance(node, Scalar):
        raise CannotEditError("it is no plain value", node.start, node.end)
    return node
