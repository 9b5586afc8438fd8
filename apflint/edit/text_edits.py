"""Applies edits to a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.fix import Edit


class CannotEditError(Exception):
    """The text does not permit an edit. The message is the reason, as a clause; the obstacle is `text[start:end]`, if known."""

    def __init__(self, reason: str, start: int = 0, end: int = 0) -> None:
        super().__init__(reason)
        self.start = start
        self.end = end


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits applied. Equal edits are one; an insertion precedes a replacement at the same offset.

    Raises CannotEditError if edits overlap.
    """
    pieces: list[str] = []
    at = 0
    last: Edit | None = None
    for edit in sorted(set(edits)):
        are_both_insertions = last is not None and last.start == last.end == edit.start == edit.end
        if edit.start < at or are_both_insertions or not edit.start <= edit.end <= len(text):
            raise CannotEditError(f"edits overlap or are outside of the text: {last} and {edit}", edit.start, edit.end)
        pieces += (text[at : edit.start], edit.new)
        at, last = edit.end, edit
    pieces.append(text[at:])
    return "".join(pieces)
