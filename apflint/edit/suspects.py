"""Whose fix it is that a FlowSchema clashes with others: that of one of the few that the finding is about.

That a part never decides (APF501, APF502) is a fact about its own FlowSchema and about those that take its requests, and
a tie (APF503) is one about two of them. The finding names them. Where only one of these was edited, that is the reason,
whatever was done to all others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.checks.reachability import names_all
from apflint.checks.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.edit.consequences import Extent
    from apflint.finding import Finding

CLASHES = frozenset({"APF501", "APF502", "APF503"})
_QUOTED = re.compile(r'"[^"]+"')


class Edited:
    """The objects that were edited, in the order in which it was done."""

    def __init__(self, batch: Iterable[Finding]) -> None:
        self._batch = {(found.file, found.object) for found in batch}
        """Those that can be blamed: what had to be mended after them is no fault of its own."""
        self._order: dict[Extent, int] = {}
        self._named: dict[tuple[str, str], set[Extent]] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """These are mended."""
        for found in findings:
            place = found.file, found.object
            self._order.setdefault(place, len(self._order))
            if found.object is not None and found.object.kind == "FlowSchema":
                self._named.setdefault((found.file, quote(found.object.name)), set()).add(place)

    def blamed(self, clashes: Iterable[Finding]) -> tuple[dict[Extent, list[Finding]], frozenset[Extent]]:
        """The findings of `CLASHES` by the one place that was edited of those they are about.

        And where several were edited: the last of them. Those before it may go well without it, or it without them.
        """
        alone: dict[Extent, list[Finding]] = {}
        later: set[Extent] = set()
        for found in clashes:
            suspects = self._suspects(found)
            if len(suspects) == 1:
                alone.setdefault(suspects[0], []).append(found)
            elif suspects:
                later.add(suspects[-1])
        return alone, frozenset(later)

    def _suspects(self, found: Finding) -> list[Extent]:
        """The edited ones of those that a finding is about; none where that is not certain."""
        if not names_all(found.message):
            return []
        # The file may have been edited outside of objects: a comment that had set the finding aside.
        own: tuple[Extent, ...] = ((found.file, found.object), (found.file, None))
        suspects = {place for place in own if place in self._order}
        files = {related.file for related in found.related}
        for name in set(_QUOTED.findall(found.message)) if files else ():
            suspects.update(*(self._named.get((file, name), ()) for file in files))
        return sorted(suspects, key=self._order.__getitem__) if suspects <= self._batch else []
