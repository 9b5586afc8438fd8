"""Carries out operations on objects in two ways: as edits of the text, and on the decoded value. `proof` compares the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from apflint.edit import insertion, nesting, removal, replacement
from apflint.fix import Insert, Nest, Remove, Rename, Set, Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.fix import Edit, Operation
    from apflint.load.document import Document
    from apflint.load.tree import Node
    from apflint.location import Path

T = TypeVar("T")

_ORDER = (Set, Wrap, Insert, Nest, Remove, Rename)
"""The order in which operations change a value, so that none needs a key that another one has moved."""


def locate(document: Document, operations: Iterable[Operation]) -> list[Operation]:
    """Return operations on an object with paths from the root of its YAML document, which may be a list of objects."""
    return [operation._replace(path=(*document.prefix, *operation.path)) for operation in operations]


def text_edits(text: str, root: Node, operations: Iterable[Operation]) -> tuple[Edit, ...]:
    """Return the edits of a text that carry out the operations; paths start at `root`.

    Raises CannotEditError if the text does not permit that.
    """
    edits: list[Edit] = []
    removed: list[Path] = []
    for operation in _without_duplicates(operations):
        path = operation.path
        match operation:
            case Rename():
                edits.append(replacement.rename_key(text, root, path, operation.name))
            case Set():
                edits.append(replacement.replace_scalar(text, root, path, operation.value))
            case Insert():
                edits += insertion.insert_entry(text, root, path, operation.value)
            case Nest():
                edits += nesting.nest_entries(text, root, path, operation.names)
            case Wrap():
                edits.append(replacement.wrap_scalar(text, root, path, operation.name))
            case Remove():
                removed.append(path)
    return (*edits, *removal.remove_entries(text, root, removed))


def changed_value(value: dict[str, object], operations: Iterable[Operation]) -> dict[str, object]:
    """Return a copy of a value with the operations carried out.

    Raises KeyError or IndexError if an operation is about a field that is absent.
    """
    copy: dict[str, Any] = _unshared(value)
    ordered_operations = sorted(_without_duplicates(operations), key=lambda operation: _ORDER.index(type(operation)))
    # Owners are determined before anything changes: the paths are those of the object as it was.
    owners = [_owners(copy, operation) for operation in ordered_operations]
    items: list[tuple[list[Any], int]] = []
    for operation, owner in zip(ordered_operations, owners, strict=True):
        last: Any = operation.path[-1]
        match operation:
            case Rename():
                owner[-1][operation.name] = owner[-1].pop(last)
            case Set():
                owner[-1][last] = _decoded(operation.value)
            case Wrap():
                owner[-1][last] = {operation.name: owner[-1][last]}
            case Insert():
                _insert(copy, operation)
            case Nest():
                owner[-1][last] = {name: owner[-1].pop(name) for name in operation.names}
            case Remove() if isinstance(owner[-1], list):
                items.append((owner[-1], last))
            case Remove():
                _remove(owner, last)
    for owned, index in sorted(items, key=lambda item: -item[1]):
        del owned[index]
    return copy


def _unshared(value: T) -> T:
    """Return a copy in which aliases no longer share values, unlike in a copy by `copy.deepcopy`."""
    copy: Any = value
    if isinstance(value, dict):
        copy = {key: _unshared(item) for key, item in value.items()}
    elif isinstance(value, list):
        copy = [_unshared(item) for item in value]
    return cast("T", copy)


def _without_duplicates(operations: Iterable[Operation]) -> Iterable[Operation]:
    """Return each operation once. Tuples of different types are equal if their fields are, so types are compared, too."""
    return {(type(operation), operation): operation for operation in operations}.values()


def _owners(value: Any, operation: Operation) -> list[Any]:
    """Return the values on the path of an operation; the last one contains what it changes."""
    owners = [value]
    for step in operation.path[:-1]:
        if isinstance(operation, Insert) and isinstance(owners[-1], dict) and owners[-1].get(step) is None:
            break
        owners.append(owners[-1][step])
    return owners


def _insert(value: Any, operation: Insert) -> None:
    for step in operation.path[:-1]:
        if isinstance(value, dict) and value.get(step) is None:
            value[step] = {}
        value = value[step]
    value[operation.path[-1]] = _decoded(operation.value)


def _remove(owners: list[Any], last: Any) -> None:
    """Remove a key, and the mappings that this leaves empty, as `removal.remove_entries` does."""
    del owners[-1][last]
    for outer, inner in zip(reversed(owners[:-1]), reversed(owners[1:]), strict=True):
        if inner or not isinstance(outer, dict):
            return
        del outer[next(key for key, item in outer.items() if item is inner)]


def _decoded(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
