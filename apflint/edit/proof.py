"""Proves by reading an edited text that the intended operations were carried out and that nothing else has changed."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from apflint.edit.operations import changed_value
from apflint.edit.text_edits import CannotEditError
from apflint.load import load_text
from apflint.load.decode import decode
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.fix import Operation
    from apflint.load.document import Document


def prove(
    source: Source, text: str, intended: Mapping[int, Iterable[Operation]], *, allows_new_objects: bool = False
) -> None:
    """Prove that `text` contains what the operations make of the objects in `source`, and only that.

    `intended` are the operations by the offset of their YAML document, with paths from its root. With
    `allows_new_objects` there may be objects that were not recognized before. Raises CannotEditError.
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
        raise CannotEditError("something else would change as well (an anchor, perhaps)", failed=failed)
    if len(after.problems) > len(before.problems):
        raise CannotEditError("the text could not be read afterwards")


def _values(documents: Iterable[Document]) -> dict[int, dict[str, object]]:
    """Return the value of each YAML document with APF objects, by its offset: an object, or a list with other items, too."""
    values: dict[int, dict[str, object]] = {}
    for document in documents:
        if document.start not in values:
            whole = decode(document.root).value if document.prefix else document.value
            assert isinstance(whole, dict), "objects and lists are mappings"
            values[document.start] = whole
    return values


def _comparable(value: object) -> str:
    """Return a string that is equal for equal values of equal types in any order of keys (1 == True in Python)."""
    return json.dumps(value, sort_keys=True)
