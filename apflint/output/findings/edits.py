"""Finds lines and columns of the edits of a fix, for output formats whose readers apply fixes."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING

from apflint.budgets import MAX_EDIT_NEIGHBORS, MAX_PROVEN_EDIT_CHARACTERS
from apflint.location import Span

if TYPE_CHECKING:
    from apflint.finding import Finding, Report


class EditLocator:
    """Finds the edits of findings. To save time, the work for all findings of a report together is limited."""

    def __init__(self, report: Report) -> None:
        self._sources = report.sources
        self._characters_left: int = MAX_PROVEN_EDIT_CHARACTERS
        self._neighbors_left: int = MAX_EDIT_NEIGHBORS

    def locate(self, finding: Finding) -> list[tuple[Span, str]] | None:
        """Return (span to replace in the file of the finding, new text) for each edit of the fix.

        Return None if the text is not available or cannot be edited. Also return None if the edits of this
        finding and the previous findings exceed MAX_PROVEN_EDIT_CHARACTERS or MAX_EDIT_NEIGHBORS.
        """
        source = finding.document.source if finding.document else self._sources.get(finding.file)
        if source is None:
            return None
        # In a text with a YAML anchor, edits are verified by parsing the text again. Limit the total size of such texts.
        if "&" in source.text:
            self._characters_left -= len(source.text)
        self._neighbors_left -= _count_neighbors(finding)
        if self._characters_left < 0 or self._neighbors_left < 0:
            return None
        from apflint.edit.fix_batch import edits_of  # imported on demand: only fixes need it
        from apflint.edit.text_edits import CannotEditError

        try:
            edits = sorted(edits_of(finding))
        except CannotEditError:
            return None
        return [(Span(*source.position(edit.start), *source.position(edit.end)), edit.new) for edit in edits]


def _count_neighbors(finding: Finding) -> int:
    """Return the number of entries in all mappings and lists that the fix of a finding edits.

    `EditLocator` limits the sum of these numbers, because the time of an edit grows with the number of
    entries.
    """
    if finding.document is None or finding.fix is None:
        return 0
    owners = (finding.document.at(*operation.path[:-1]) for operation in finding.fix.operations)
    return sum(len(owner) for owner in owners if isinstance(owner, Sized))
