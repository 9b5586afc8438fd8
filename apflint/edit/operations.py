"""Carries out operations on objects in two ways: as edits of the text, and on the decoded value. `proof` compares the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.edit.insertion import insert_entry
from apflint.edit.nesting import nest_entries
from apflint.edit.removal import remove_entries
from apflint.edit.replacement import rename_key, replace_scalar, wrap_scalar
from apflint.fix import Insert, Nest, Remove, Rename, Set, Wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.fix import Edit, Operation
    from apflint.load.document import Document
    from apflint.load.tree import Node

_EDITORS: dict[type, Callable[..., Iterable[Edit]]] = {
    Set: replace_scalar,
    Wrap: wrap_scalar,
    Insert: insert_entry,
    Nest: nest_entries,
    Rename: rename_key,
}
_ORDER = (Set, Wrap, Insert, Nest, Remove, Rename)
"""The order in which operations change values of one depth, so that none needs a key that another one has moved."""


def locate(document: Document, operations: Iterable[Operation]) -> list[Operation]:
    """Return operations on an object with paths from the root of its YAML document, which may be a list of objects."""
    return [operation._replace(path=(*document.prefix, *operation.path)) for operation in operations]


def text_edits(text: str, root: Node, operations: Iterable[Operation]) -> tuple[Edit, ...]:
    """Return the edits of a text that carry out the operations; paths start at `root`.

    Raises CannotEditError if the text does not permit that.
    """
    edits: list[Edit] = []
    removed = []
    for operation in _without_duplicates(operations):
        if isinstance(operation, Remove):
            removed.append(operation.path)
        else:
            edits += _EDITORS[type(operation)](text, root, *operation)
    return (*edits, *remove_entries(text, root, removed))


def changed_value(value: dict[str, object], operations: Iterable[Operation]) -> dict[str, object]:
    """Return a copy of a value with the operations carried out.

    Raises KeyError or IndexError if an operation is about a field that is absent.
    """
    copy: dict[str, Any] = _unshared(value)
    for operation in sorted(_without_duplicates(operations), key=_depth_first):
        *steps, last = operation.path
        owners: list[Any] = [copy]
        for step in steps:
            if isinstance(operation, Insert) and isinstance(owners[-1], dict) and owners[-1].get(step) is None:
                owners[-1][step] = {}
            owners.append(owners[-1][step])
        match operation:
            case Set() | Insert():
                new = operation.value
                owners[-1][last] = list(new) if isinstance(new, tuple) else new
            case Wrap():
                owners[-1][last] = {operation.name: owners[-1][last]}
            case Nest():
                owners[-1][last] = {name: owners[-1].pop(name) for name in operation.names}
            case Rename():
                owners[-1][operation.name] = owners[-1].pop(last)
            case Remove():
                del owners[-1][last]
                while steps and not owners.pop() and isinstance(owners[-1], dict):
                    del owners[-1][steps.pop()]
    return copy


def _unshared(value: Any) -> Any:
    """Return a copy in which aliases no longer share values, unlike in a copy by `copy.deepcopy`."""
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def _without_duplicates(operations: Iterable[Operation]) -> Iterable[Operation]:
    """Return each operation once. Tuples of different types are equal if their fields are, so types are compared, too."""
    return {(type(operation), operation): operation for operation in operations}.values()


def _depth_first(operation: Operation) -> tuple[int, int, int]:
    """Sort deeper values first, and list items from the last one: so the paths of later operations stay as they are."""
    last = operation.path[-1]
    return -len(operation.path), _ORDER.index(type(operation)), -last if isinstance(last, int) else 0
