"""Edits of a text at exact places: what is not edited stays as it is, to the byte.

`operations` makes edits of changes of an object, with `places` (keys and values), `removal`, `insertion` and `nesting`; `files`
replaces files. `fix` applies the fixes of findings, and `regressions` compares the findings before and after; `versions`, `meaning` and
`migrate` move objects from one API version to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.fix import Edit


class CannotEditError(ValueError):
    """Why a place cannot be edited, as a sentence without its end; it is `text[start:end]`."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made: of two at one place, what is put in before what is replaced.

    The same edit given twice is one. ValueError where two of them are at odds.
    """
    pieces: list[str] = []
    at = 0
    last: Edit | None = None
    for edit in sorted(set(edits)):
        both_put_in = last is not None and last.start == last.end == edit.start == edit.end
        if edit.start < at or both_put_in or not edit.start <= edit.end <= len(text):
            raise ValueError(f"two edits of the same text, or one outside it: {last} and {edit}")
        pieces += (text[at : edit.start], edit.new)
        at, last = edit.end, edit
    pieces.append(text[at:])
    return "".join(pieces)
