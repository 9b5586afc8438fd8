"""Operations on objects, twice: on the decoded value, and as edits of the text. Whoever edits holds one against the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from apflint.edit import insertion, nesting, places, removal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.finding import Edit, Operation
    from apflint.load.document import Document
    from apflint.location import Path

T = TypeVar("T")


def edits(document: Document, operations: Iterable[Operation]) -> tuple[Edit, ...]:
    """The edits of the document's text that make the operations. CannotEditError where the text does not let us."""
    text, root = document.source.text, document.root
    found: list[Edit] = []
    gone: list[Path] = []
    for operation in dict.fromkeys(operations):
        path = (*document.prefix, *operation.path)
        match operation.what:
            case "rename":
                found.append(places.renamed(text, root, path, _name(operation)))
            case "set":
                found.append(places.written(text, root, path, operation.value))
            case "insert":
                found += insertion.inserted(text, root, path, operation.value)
            case "nest":
                found += nesting.nested(text, root, path, _names(operation))
            case "wrap":
                found.append(places.wrapped(text, root, path, _name(operation)))
            case "remove":
                gone.append(path)
    return (*found, *removal.removed(text, root, gone))


def carried_out(value: dict[str, object], operations: Iterable[Operation]) -> dict[str, object]:
    """A copy of an object with the operations made on it. KeyError or IndexError where they are about what is not there."""
    copy: dict[str, Any] = unshared(value)
    made = sorted(dict.fromkeys(operations), key=lambda operation: _ORDER.index(operation.what))
    # Owners are looked up before anything changes: the paths are those of the object as it was.
    owners = [_owners(copy, operation) for operation in made]
    items: list[tuple[list[Any], int]] = []
    for operation, owner in zip(made, owners, strict=True):
        last: Any = operation.path[-1]
        match operation.what:
            case "rename":
                owner[-1][_name(operation)] = owner[-1].pop(last)
            case "set":
                owner[-1][last] = _plain(operation.value)
            case "wrap":
                owner[-1][last] = {_name(operation): owner[-1][last]}
            case "insert":
                _insert(copy, operation)
            case "nest":
                owner[-1][last] = {name: owner[-1].pop(name) for name in _names(operation)}
            case "remove" if isinstance(owner[-1], list):
                items.append((owner[-1], last))
            case "remove":
                _remove(owner, last)
    for owned, index in sorted(items, key=lambda item: -item[1]):
        del owned[index]
    return copy


_ORDER = ("set", "wrap", "insert", "nest", "remove", "rename")


def unshared(value: T) -> T:
    """A copy without the sharing that aliases make, which `copy.deepcopy` would keep."""
    made: Any = value
    if isinstance(value, dict):
        made = {key: unshared(item) for key, item in value.items()}
    elif isinstance(value, list):
        made = [unshared(item) for item in value]
    return cast("T", made)


def ordered(value: object) -> object:
    """With the keys of mappings in order, so that `repr` compares values and their types."""
    if isinstance(value, dict):
        return [(key, ordered(value[key])) for key in sorted(value)]
    return [ordered(item) for item in value] if isinstance(value, list) else value


def _owners(value: Any, operation: Operation) -> list[Any]:
    """The values on the way to the place of an operation, the last being what holds it."""
    found = [value]
    for step in operation.path[:-1]:
        if operation.what == "insert" and (isinstance(found[-1], dict) and found[-1].get(step) is None):
            break
        found.append(found[-1][step])
    return found


def _insert(value: Any, operation: Operation) -> None:
    for step in operation.path[:-1]:
        if isinstance(value, dict) and value.get(step) is None:
            value[step] = {}
        value = value[step]
    value[operation.path[-1]] = _plain(operation.value)


def _remove(owners: list[Any], last: Any) -> None:
    """A mapping that loses its last entry goes with it: `removal.removed`."""
    del owners[-1][last]
    for outer, inner in zip(reversed(owners[:-1]), reversed(owners[1:]), strict=True):
        if inner or not isinstance(outer, dict):
            return
        del outer[next(key for key, item in outer.items() if item is inner)]


def _name(operation: Operation) -> str:
    assert isinstance(operation.value, str)
    return operation.value


def _names(operation: Operation) -> tuple[str, ...]:
    assert isinstance(operation.value, tuple)
    return operation.value


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
