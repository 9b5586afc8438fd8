"""Inserts new keys into mappings, in the usual order of the fields in manifests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.entry_locations import (
    comments_start,
    entry_end,
    entry_lines_end,
    key_quote,
    line_end,
    line_prefix,
    line_start,
    next_line_start,
)
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Edit
from apflint.fixes.yaml_values import value_start, write_literal, write_string
from apflint.load.tree import Mapping, Node, Scalar, resolve_alias, walk

if TYPE_CHECKING:
    from apflint.location import Path

_FIELD_ORDER = (
    *("kind", "type", "namespace", "name", "labels", "annotations"),
    *("matchingPrecedence", "priorityLevelConfiguration", "distinguisherMethod", "rules"),
    *("verbs", "apiGroups", "resources", "clusterScope", "namespaces"),
    *("nominalConcurrencyShares", "assuredConcurrencyShares", "limitResponse", "queuing"),
)
"""Field names in the order of the Kubernetes types and examples. One list contains the fields of all types."""
_COMMENT_AFTER_LAST = re.compile(r"[ \t]*(,?)[ \t]*(?<=[ \t,])#[^\r\n]*")


class _NewEntry(NamedTuple):
    """A new entry to insert, together with new parent mappings that the text does not contain.

    `names` are the keys of these mappings, outermost first, and then the key of the entry.
    """

    names: tuple[str, ...]
    value: object
    quote: str
    """The quote around each key, or an empty string."""

    def write_lines(self, column: int, end: str) -> str:
        """Return the entry in block style. Its first key is at `column`, counted from 0. `end` is the line end.

        The first line has no indentation, and the last line has no line end.
        """
        is_plain = isinstance(self.value, str) and not self.quote
        value = write_string(str(self.value)) if is_plain else write_literal(self.value)
        keys = [f"{' ' * (column + 2 * depth)}{self.quote}{name}{self.quote}:" for depth, name in enumerate(self.names)]
        return f"{end.join(keys)} {value}".lstrip(" ")

    def write_flow(self) -> str:
        """Return the entry in flow style."""
        keys = ": {".join(f"{self.quote}{name}{self.quote}" for name in self.names)
        return f"{keys}: {write_literal(self.value)}" + "}" * (len(self.names) - 1)


def insert_entry(text: str, root: Node, path: Path, value: object) -> list[Edit]:
    """Return the edits that insert a key with a value at `path`. Missing parent mappings are inserted as well.

    The key goes after the fields that precede it in `_FIELD_ORDER`, or to the end of the mapping if `_FIELD_ORDER` does not
    contain the key. Raises CannotEditError if the deepest existing parent is not a mapping.
    """
    depth, key, node = walk(root, path[:-1])
    owner = resolve_alias(node)
    entry = _NewEntry(tuple(map(str, path[depth:])), value, "")
    if isinstance(owner, Scalar) and owner.value is None and owner is node and key is not None:
        return [_replace_null(text, key, owner, entry)]
    if not isinstance(owner, Mapping):
        raise CannotEditError("there is no such mapping", node.start)
    pairs = sorted((*owner.pairs, *((key, value) for _, key, value in owner.merges)), key=lambda pair: pair[0].start)
    if not pairs:
        at = text.index("{", owner.start) + 1
        return [Edit(at, at, entry._replace(quote='"').write_flow())]
    entry = entry._replace(quote=key_quote(text, pairs[0][0]))
    index = _find_index(entry.names[0], pairs)
    return _insert_in_flow(text, pairs, index, entry) if owner.flow else [_insert_lines(text, pairs, index, entry)]


def _find_index(name: str, pairs: list[tuple[Scalar, Node]]) -> int:
    """Return the index in `pairs` at which to insert the key `name`, according to `_FIELD_ORDER`."""
    if name not in _FIELD_ORDER:
        return len(pairs)
    earlier = _FIELD_ORDER[: _FIELD_ORDER.index(name)]
    return max((number for number, (key, _) in enumerate(pairs, 1) if key.value in earlier), default=0)


def _replace_null(text: str, key: Scalar, null: Scalar, entry: _NewEntry) -> Edit:
    start = value_start(text, null)
    if start < null.end:
        return Edit(start, null.end, f"{{{entry._replace(quote=key_quote(text, key)).write_flow()}}}")
    column = len(line_prefix(text, key)) + 2
    return _insert_line(text, next_line_start(text, key.start, entry_end(text, key, null)), entry, column)


def _insert_lines(text: str, pairs: list[tuple[Scalar, Node]], index: int, entry: _NewEntry) -> Edit:
    """Return the edit that inserts an entry in block style before `pairs[index]`, or after the last pair."""
    key, value = pairs[max(index - 1, 0)]
    prefix = line_prefix(text, key)
    column = len(prefix)
    if index:
        return _insert_line(text, entry_lines_end(text, key, value, column), entry, column)
    if not prefix.strip(" "):
        return _insert_line(text, comments_start(text, key.start - column, column), entry, column)
    # The first key of a list item is on the line of the dash. Insert the entry after the dash, and move
    # the key to the next line.
    end = line_end(text)
    return Edit(key.start, key.start, f"{entry.write_lines(column, end)}{end}{' ' * column}")


def _insert_line(text: str, at: int, entry: _NewEntry, column: int) -> Edit:
    """Return the edit that inserts an entry in block style. `at` is the start of a line, or the end of the last line."""
    end = line_end(text)
    lines = " " * column + entry.write_lines(column, end)
    return Edit(at, at, f"{lines}{end}" if line_start(text, at) == at else f"{end}{lines}")


def _insert_in_flow(text: str, pairs: list[tuple[Scalar, Node]], index: int, entry: _NewEntry) -> list[Edit]:
    """Return the edits that insert an entry in flow style, before the entry at `index` or after the last entry."""
    key, value = pairs[min(index, len(pairs) - 1)]
    line, new, end = line_start(text, key.start), entry.write_flow(), line_end(text)
    prefix = text[line : key.start]
    starts_line = not prefix.strip()
    if index < len(pairs):
        at = comments_start(text, line, len(prefix)) if starts_line else key.start
        return [Edit(at, at, f"{prefix}{new},{end}" if starts_line else f"{new}, ")]
    at = entry_end(text, key, value)
    comment = _COMMENT_AFTER_LAST.match(text, at)
    if comment is None:
        return [Edit(at, at, f",{end}{prefix}{new}" if starts_line else f", {new}")]
    comma = comment[1]
    insertion = Edit(comment.end(), comment.end(), f"{end}{' ' * len(prefix)}{new}{comma}")
    return [insertion] if comma else [Edit(at, at, ","), insertion]
