"""Fixes that several rules use: correct a spelling, set or remove a field, change the items of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.edit_operations import Fix, Insert, Operation, Remove, Set
from apflint.spelling import find_intended
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from apflint.edit_operations import Value
    from apflint.load.document import Document
    from apflint.location import Path, Place

_MAX_LISTED_CHANGES = 4
"""Maximum number of changes that the title of a fix lists."""


def correct_spelling(path: Path, word: str, known: Iterable[str], *, safe: bool = True) -> Fix | None:
    """Return a fix that replaces the misspelled string `word`, or None if the intended word is not certain."""
    intended = find_intended(word, known)
    return replace_value(path, word, intended, safe=safe) if intended and intended != word else None


def replace_value(path: Path, old: str, new: str, *, safe: bool) -> Fix:
    """Return a fix that replaces the string `old` at `path` by the string `new`."""
    return Fix(f"change {quote(old)} to {quote(new)}", safe, (Set(path, new),))


def set_field(document: Document, path: Path, value: Value, title: str, *, safe: bool) -> Fix:
    """Return a fix that sets a field: it adds an absent field, and replaces the value of a present field."""
    return Fix(title, safe, (Set(path, value) if document.has(*path) else Insert(path, value),))


def set_fields(places: Iterable[Place], name: str, value: Value, title: str) -> Fix:
    """Return an unsafe fix that sets the field `name` in the mappings at `places`."""
    fixes = (set_field(place.document, (*place.path, name), value, title, safe=False) for place in places)
    return Fix(title, safe=False, operations=tuple(operation for fix in fixes for operation in fix.operations))


def set_values(place: Place, values: Mapping[str, Value], title: str) -> Fix:
    """Return an unsafe fix that sets several fields of the mapping at `place`."""
    fixes = [set_field(place.document, (*place.path, name), values[name], title, safe=False) for name in values]
    return Fix(title, safe=False, operations=tuple(operation for fix in fixes for operation in fix.operations))


def remove_field(path: Path, *, safe: bool) -> Fix:
    """Return a fix that removes a field."""
    return Fix(f"remove {quote(path[-1])}", safe, (Remove(path),))


def replace_items(path: Path, items: Sequence[str], new: Mapping[int, str], *, safe: bool) -> Fix:
    """Return a fix that replaces items of a list of strings. `new` maps indices to new items.

    Items that would become duplicates are removed.
    """
    present = {item for index, item in enumerate(items) if index not in new}
    changes: list[tuple[str, Operation]] = []
    for index, item in sorted(new.items()):
        changes.append(_replace_item((*path, index), items[index], item, present))
        present.add(item)
    titles = [title for title, _ in changes]
    return Fix(join_some(titles, _MAX_LISTED_CHANGES), safe, tuple(operation for _, operation in changes))


def replace_item(path: Path, old: str, new: str, others: Collection[str], *, safe: bool) -> Fix:
    """Return a fix that replaces the list item at `path` by `new`, or removes the item if `others` contains `new`.

    If `others` has many items, it should be a set.
    """
    title, operation = _replace_item(path, old, new, others)
    return Fix(title, safe, (operation,))


def _replace_item(path: Path, old: str, new: str, others: Collection[str]) -> tuple[str, Operation]:
    if new in others:
        return f"remove {quote(old)} next to {quote(new)}", Remove(path)
    return f"change {quote(old)} to {quote(new)}", Set(path, new)


def remove_items(path: Path, items: Sequence[str], indices: Sequence[int], reason: str, *, safe: bool) -> Fix:
    """Return a fix that removes the items at `indices` from a list of strings. Its title ends with `reason`."""
    removed = list(dict.fromkeys(quote(items[index]) for index in indices))
    operations = tuple(Remove((*path, index)) for index in indices)
    return Fix(f"remove {join_some(removed, _MAX_LISTED_CHANGES)} {reason}", safe, operations)
