"""Turns operations on objects into edits of the text, and proves that the edited text contains the intended values."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from apflint.edit.insertion import insert_entry
from apflint.edit.move_into_mapping import nest_entries
from apflint.edit.removal import remove_entries
from apflint.edit.replacement import rename_key, replace_scalar, wrap_scalar
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Insert, Nest, Remove, Rename, Set, Wrap
from apflint.load import load_text
from apflint.load.kubernetes_decoding import decode
from apflint.load.source_text import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.edit_operations import Edit, Operation
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
"""Order of operations at the same depth. Operations that move or remove keys come after operations on these keys."""


def locate(document: Document, operations: Iterable[Operation]) -> list[Operation]:
    """Return operations on an object as operations on the YAML document that contains the object.

    The paths of the result start at the root of the document instead of the root of the object. The two roots differ if
    the document is a list of objects.
    """
    return [operation._replace(path=(*document.prefix, *operation.path)) for operation in operations]


def text_edits(text: str, root: Node, operations: Iterable[Operation]) -> tuple[Edit, ...]:
    """Return the edits of `text` that carry out `operations`. The paths of the operations start at `root`.

    Raises CannotEditError if the text does not permit an operation.
    """
    edits: list[Edit] = []
    removed = []
    for operation in _without_duplicates(operations):
        if isinstance(operation, Remove):
            removed.append(operation.path)
        else:
            edits += _EDITORS[type(operation)](text, root, *operation)
    return (*edits, *remove_entries(text, root, removed))


def prove(
    source: Source, text: str, intended: Mapping[int, Iterable[Operation]], *, allows_new_objects: bool = False
) -> None:
    """Prove that `text` contains the objects of `source`, changed by the intended operations and by nothing else.

    `intended` maps the start offset of a YAML document to operations, with paths from the root of the document. If
    `allows_new_objects` is true, `text` may contain further objects. Raises CannotEditError if the proof fails.
    """
    before, after = load_text(source), load_text(Source(source.name, text))
    values, new_values = _values(before.documents), iter(_values(after.documents).values())
    failed = []
    for start, value in values.items():
        try:
            expected = _comparable(changed_value(value, intended.get(start, ())))
        except LookupError:
            raise CannotEditError("the fixes contradict each other", failed=[start]) from None
        candidates = new_values if allows_new_objects else islice(new_values, 1)
        if not any(_comparable(new) == expected for new in candidates):
            failed.append(start)
    if failed or (not allows_new_objects and any(True for _ in new_values)):
        raise CannotEditError("the edit would change another value, too, perhaps because of an anchor", failed=failed)
    if len(after.problems) > len(before.problems):
        raise CannotEditError("the text could not be read afterwards")


def changed_value(value: dict[str, object], operations: Iterable[Operation]) -> dict[str, object]:
    """Return a copy of the object `value`, changed by `operations`.

    Raises KeyError or IndexError if an operation needs a field that is absent.
    """
    # `copy.deepcopy` would share the value of an alias between all of its places. In this copy, each place has its own
    # value, so an operation changes only one place.
    copy: dict[str, Any] = json.loads(json.dumps(value))
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


def _values(documents: Iterable[Document]) -> dict[int, dict[str, object]]:
    """Return a mapping from start offsets to the values of all YAML documents with APF objects.

    A value is an APF object, or a list that may also contain objects of other APIs.
    """
    values: dict[int, dict[str, object]] = {}
    for document in documents:
        if document.start not in values:
            whole = decode(document.root).value if document.prefix else document.value
            assert isinstance(whole, dict), "objects and lists are mappings"
            values[document.start] = whole
    return values


def _comparable(value: object) -> str:
    """Return a value as JSON with sorted keys. JSON distinguishes values of different types, but in Python `1 == True`."""
    return json.dumps(value, sort_keys=True)


def _without_duplicates(operations: Iterable[Operation]) -> Iterable[Operation]:
    """Yield each operation once, even if `operations` contains it several times.

    Types are compared as well, because named tuples of different types can be equal.
    """
    return {(type(operation), operation): operation for operation in operations}.values()


def _depth_first(operation: Operation) -> tuple[int, int, int]:
    """Return a sort key that puts operations on deeper values first, and operations on later items of a list first.

    In this order, an operation does not change the paths of the operations after it.
    """
    last = operation.path[-1]
    return -len(operation.path), _ORDER.index(type(operation)), -last if isinstance(last, int) else 0
