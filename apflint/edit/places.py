"""Edits of keys and values in a tree: block or flow style, YAML or JSON, quoted or not.

Each function returns edits whose outcome the caller has to check by reading the text again: a value may be shared through
an anchor, and an edit of it then changes other places as well. Paths are from the root of the text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from apflint.edit import CannotEditError
from apflint.edit.lines import body
from apflint.fix import Edit
from apflint.load.scalars import plain
from apflint.load.tree import Alias, Mapping, Node, Scalar, behind, child, entries, walk

if TYPE_CHECKING:
    from apflint.location import Path

# What may stand without quotes anywhere, if YAML reads a text in it: a cautious choice.
_WORD = re.compile(r"/?[A-Za-z_][A-Za-z0-9_-]*(?:[/:.][A-Za-z0-9_-]+)*\Z")


def replaced(text: str, root: Node, path: Path, old: str, new: str) -> Edit:
    """The value at `path`, a text that holds `old`, with `new` in its place; its quotes stay."""
    return _replaced(text, _scalar(root, path), old, new)


def renamed(text: str, root: Node, path: Path, new: str) -> Edit:
    """The key of the value at `path` named `new`."""
    return _replaced(text, entry(root, path)[0], str(path[-1]), new)


def written(text: str, root: Node, path: Path, new: object) -> Edit:
    """The value at `path` written anew: `literal`, in the quotes of the old one where both are texts."""
    scalar = _scalar(root, path)
    start = body(text, scalar)
    gap = " " if start == scalar.end and text[start - 1 : start] not in ("", " ", "\t", "\n") else ""
    if not isinstance(new, str):
        return Edit(start, scalar.end, gap + literal(new))
    quote = text[start : start + 1]
    if quote == "'" and new.isprintable():
        return Edit(start, scalar.end, "'" + new.replace("'", "''") + "'")
    # A value that is no text may stand in JSON, or next to others that are in quotes for a reason.
    unquoted = isinstance(scalar.value, str) and quote not in ('"', "'")
    return Edit(start, scalar.end, gap + (word(new) if unquoted else literal(new)))


def wrapped(text: str, root: Node, path: Path, name: str) -> Edit:
    """The value at `path`, a text on one line, as the only entry of a mapping in braces; its quotes stay."""
    key, _ = entry(root, path)
    scalar = _scalar(root, path)
    start = body(text, scalar)
    old = text[start : scalar.end]
    if not isinstance(scalar.value, str) or "\n" in old or "\r" in old:
        raise CannotEditError("it is no text on one line", scalar.start, scalar.end)
    quote = '"' if text[body(text, key)] == '"' else ""
    inner = old if old[:1] in ('"', "'") else word(scalar.value)
    return Edit(start, scalar.end, f"{{{quote}{name}{quote}: {inner}}}")


def literal(value: object) -> str:
    """A value as both YAML and JSON read it: a text, number, truth, null, or a list of such."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def word(new: str) -> str:
    """A text as YAML, in quotes only where it needs them."""
    return new if _WORD.match(new) and plain(new) == new else literal(new)


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


def mapping(root: Node, path: Path) -> Mapping:
    """The mapping at `path`. CannotEditError where there is none."""
    depth, _, node = walk(root, path)
    found = behind(node)
    if depth < len(path) or not isinstance(found, Mapping):
        raise CannotEditError("there is no such mapping", node.start, node.end)
    return found


def entry(root: Node, path: Path) -> tuple[Scalar, Node]:
    """Key and value at `path`. CannotEditError where there is no such entry."""
    owner = mapping(root, path[:-1])
    found = entries(owner).get(str(path[-1]))
    if found is None:
        raise CannotEditError(f"there is no `{path[-1]}`", owner.start, owner.end)
    return found


def _replaced(text: str, scalar: Scalar, old: str, new: str) -> Edit:
    start = body(text, scalar)
    at = text.rfind(old, start, scalar.end)
    if at >= 0:
        return Edit(at, at + len(old), new)
    # Written with escapes or over several lines: once more, and plainly.
    return Edit(start, scalar.end, literal(str(scalar.value).replace(old, new)))


def _scalar(root: Node, path: Path) -> Scalar:
    depth, _, node = walk(root, path)
    found = behind(node)
    if depth < len(path) or not isinstance(found, Scalar):
        raise CannotEditError("it is no plain value", node.start, node.end)
    return found
