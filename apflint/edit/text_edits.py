"""Applies edits to a text, and finds the original line of each line of the edited text.

Messages show original lines, because users know only the original text.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.edit_operations import Edit
    from apflint.load.source_text import Source


class CannotEditError(Exception):
    """Raised if the text does not permit an edit. The message is a clause that states the reason."""

    def __init__(self, reason: str, start: int = 0, failed: Iterable[int] = ()) -> None:
        super().__init__(reason)
        self.start = start
        """Offset of the text that cannot be edited, or 0 if the offset is unknown."""
        self.failed = frozenset(failed)
        """Start offsets of the YAML documents that would not have the intended values, if known."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits applied.

    Equal edits are applied once. At the same offset, an insertion goes before a replacement. Raises CannotEditError if edits
    overlap or are outside of the text.
    """
    pieces: list[str] = []
    at = 0
    last: Edit | None = None
    for edit in sorted(set(edits)):
        are_both_insertions = last is not None and last.start == last.end == edit.start == edit.end
        if edit.start < at or are_both_insertions or not edit.start <= edit.end <= len(text):
            raise CannotEditError(f"edits overlap or are outside of the text: {last} and {edit}", edit.start)
        pieces += (text[at : edit.start], edit.new)
        at, last = edit.end, edit
    pieces.append(text[at:])
    return "".join(pieces)


def map_lines(old: Source, new: Source, edits: Iterable[Edit], known: list[int] | None) -> list[int]:
    """Return the original line number of each line of `new`, which is `old` with `edits` applied.

    `known` are the original line numbers of `old`, or None if `old` is the original text. An inserted line gets the number
    of the line at which it was inserted.
    """
    lines: list[int] = []
    remaining = sorted(set(edits), reverse=True)
    growth = 0  # number of characters that the edits so far have added
    for start in new.line_starts:
        while remaining and start >= remaining[-1].start + growth + len(remaining[-1].new):
            edit = remaining.pop()
            growth += len(edit.new) - (edit.end - edit.start)
        is_inserted = remaining and start > remaining[-1].start + growth
        line = bisect_right(old.line_starts, remaining[-1].start if is_inserted else start - growth)
        lines.append(line if known is None else known[line - 1])
    return lines
