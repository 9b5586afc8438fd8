"""Edits of a text at exact places: what is not edited stays as it is, to the byte.

`places` makes the edits of keys and values in a tree, `files` replaces files, `versions`, `meaning` and `migrate` move
objects from one API version to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`. Offsets are in code points."""

    start: int
    end: int
    new: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made. The same edit given twice is one. ValueError where two of them are at odds."""
    pieces: list[str] = []
    at = 0
    last: Edit | None = None
    for edit in sorted(set(edits)):
        if (
            edit.start < at
            or (last is not None and edit.start == last.start)
            or not edit.start <= edit.end <= len(text)
        ):
            raise ValueError(f"two edits of the same text, or one outside it: {last} and {edit}")
        pieces += (text[at : edit.start], edit.new)
        at, last = edit.end, edit
    pieces.append(text[at:])
    return "".join(pieces)
