"""Replaces keys and scalars in block or flow style, YAML or JSON, with or without quotes.

Paths start at the root of the tree.

If aliases repeat a value, an edit of the value also changes other places. So callers must parse the edited text, and
check that only the intended values have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.edit.entry_locations import find_entry, key_quote
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Edit
from apflint.fixes.yaml_values import value_start, write_literal, write_string
from apflint.load.tree import Scalar, resolve_alias, walk

if TYPE_CHECKING:
    from apflint.load.tree import Node
    from apflint.location import Path


def replace_part(text: str, root: Node, path: Path, old: str, new: str) -> Edit:
    """Return the edit that replaces the substring `old` of the string at `path`. The string keeps its quotes."""
    return _replace_part(text, _find_scalar(root, path), old, new)


def rename_key(text: str, root: Node, path: Path, new: str) -> list[Edit]:
    """Return the edits that rename the key of the entry at `path`."""
    return [_replace_part(text, find_entry(root, path)[0], str(path[-1]), new)]


def replace_scalar(text: str, root: Node, path: Path, new: object) -> list[Edit]:
    """Return the edits that replace the scalar at `path`. If the old and the new value are strings, the quotes stay."""
    scalar = _find_scalar(root, path)
    start = value_start(text, scalar)
    gap = " " if start == scalar.end and text[start - 1 : start] not in ("", " ", "\t", "\n") else ""
    quote = text[start : start + 1]
    written = write_literal(new)
    if isinstance(new, str) and quote == "'" and new.isprintable():
        written = "'" + new.replace("'", "''") + "'"
    elif isinstance(new, str) and isinstance(scalar.value, str) and quote not in ('"', "'"):
        written = write_string(new)  # in JSON, the old string would have quotes, so the text is YAML
    return [Edit(start, scalar.end, gap + written)]


def wrap_scalar(text: str, root: Node, path: Path, name: str) -> list[Edit]:
    """Return the edits that replace the string at `path` with `{name: string}`. The quotes of the string stay.

    Raises CannotEditError if the value is not a string on one line.
    """
    key, _ = find_entry(root, path)
    scalar = _find_scalar(root, path)
    start = value_start(text, scalar)
    old = text[start : scalar.end]
    if not isinstance(scalar.value, str) or "\n" in old or "\r" in old:
        raise CannotEditError("the value is not a string on one line", scalar.start)
    quote = key_quote(text, key)
    inner = old if old[:1] in ('"', "'") else write_string(scalar.value)
    return [Edit(start, scalar.end, f"{{{quote}{name}{quote}: {inner}}}")]


def _replace_part(text: str, scalar: Scalar, old: str, new: str) -> Edit:
    start = value_start(text, scalar)
    at = text.rfind(old, start, scalar.end)
    if at >= 0:
        return Edit(at, at + len(old), new)
    # The string has escapes or several lines: replace the whole string.
    return Edit(start, scalar.end, write_literal(str(scalar.value).replace(old, new)))


def _find_scalar(root: Node, path: Path) -> Scalar:
    depth, _, node = walk(root, path)
    scalar = resolve_alias(node)
    if depth < len(path) or not isinstance(scalar, Scalar):
        raise CannotEditError("it is not a scalar", node.start)
    return scalar
