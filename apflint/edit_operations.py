"""Fixes of findings, and the operations and text edits of which they consist.

A fix in an object consists of operations on fields. A fix outside of objects, such as in a comment, consists of text
edits. Rules suggest fixes, and `apflint.edit` applies the fixes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.location import Path

    Value = str | int | bool | tuple[str, ...]
    """A value that an operation writes. A tuple is a list of strings."""


class Rename(NamedTuple):
    """Renames the key at `path` to `name`.

    In all operations of a fix, paths refer to the object before the first operation of the fix.
    """

    path: Path
    name: str


class Set(NamedTuple):
    """Replaces the scalar at `path` by `value`."""

    path: Path
    value: Value


class Insert(NamedTuple):
    """Adds the key at `path` with `value`. The key must be absent. Missing parent mappings are added, too."""

    path: Path
    value: Value


class Remove(NamedTuple):
    """Removes the mapping entry or list item at `path`. A mapping that becomes empty is removed, too."""

    path: Path


class Nest(NamedTuple):
    """Moves the keys `names` from the parent mapping of `path` into a new mapping at `path`."""

    path: Path
    names: tuple[str, ...]


class Wrap(NamedTuple):
    """Replaces the value at `path` by a mapping with one entry: the key `name` with the old value."""

    path: Path
    name: str


Operation = Rename | Set | Insert | Remove | Nest | Wrap


class Edit(NamedTuple):
    """Replaces `text[start:end]` by `new`. Offsets are in code points."""

    start: int
    end: int
    new: str


class Fix(NamedTuple):
    """A change of a manifest that removes the cause of a finding."""

    title: str
    """The change in the imperative: `rename "queue" to "queues"`."""
    safe: bool
    """Whether the fix is safe. If the server accepts the object, a safe fix does not change the meaning of the object. If the
    server rejects the object, a safe fix restores what the user obviously intended."""
    operations: tuple[Operation, ...] = ()
    edits: tuple[Edit, ...] = ()
