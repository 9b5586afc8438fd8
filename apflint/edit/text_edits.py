"""Applies edits to a text, and maps its lines to those before all edits: the ones that users see."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.fix import Edit
    from apflint.load.source import Source


class CannotEditError(Exception):
    """The text does not permit an edit. The message is the reason, as a clause."""

    def __init__(self, reason: str, start: int = 0, failed: Iterable[int] = ()) -> None:
        super().__init__(reason)
        self.start = start
        """Offset of the obstacle, if known."""
        self.failed = frozenset(failed)
        """Offsets of the YAML documents that would not be as intended, if known."""


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
            raise CannotEditError(f"edits overlap or are outside of the text: {last} and {edit}", edit.start)
        pieces += (text[at : edit.start], edit.new)
        at, last = edit.end, edit
    pieces.append(text[at:])
    return "".join(pieces)


def map_lines(old: Source, new: Source, edits: Iterable[Edit], known: list[int] | None) -> list[int]:
    """Return the original line of each line of `new`, which is `old` with `edits` applied; `known` are those of `old`.

    An inserted line counts as the line where it was inserted.
    """
    lines: list[int] = []
    remaining = sorted(set(edits), reverse=True)
    growth = 0  # number of characters that the edits before a line add
    for start in new.line_starts:
        while remaining and start >= remaining[-1].start + growth + len(remaining[-1].new):
            edit = remaining.pop()
            growth += len(edit.new) - (edit.end - edit.start)
        is_inserted = remaining and start > remaining[-1].start + growth
        line = bisect_right(old.line_starts, remaining[-1].start if is_inserted else start - growth)
        lines.append(line if known is None else known[line - 1])
    return lines
