"""How many fixes to try at once, when not all of them go well."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from apflint.edit import CannotEditError, operations
from apflint.edit.consequences import places

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apflint.edit.consequences import Extent
    from apflint.finding import Edit, Finding


class Portions:
    """All at first; half as many, in the objects or files concerned, each time some do not go well; then more and more again."""

    def __init__(self) -> None:
        self._fixes: dict[Extent, int] = {}
        """How many in a file or in an object; all where it is not named."""
        self._files: int | None = None
        """In how many files; None is all of them."""
        self._later: set[Extent] = set()
        """What waits until nothing else is left to try."""

    def of(self, findings: Iterable[Finding]) -> list[Finding]:
        """The next portion."""
        findings = list(findings)
        now = [found for found in findings if self._later.isdisjoint(places(found))]
        if not now:
            self._later.clear()
        by_file = _by_file(now or findings)
        taken: Counter[Extent] = Counter()
        portion = []
        for name in list(by_file)[: self._files]:
            halved = (name,) in self._fixes
            for fixes in _bound(by_file[name]) if halved else ([found] for found in by_file[name]):
                around = {place for found in fixes for place in places(found) if place}
                if all(taken[place] < self._fixes.get(place, len(by_file[name])) for place in around):
                    taken.update(around)
                    portion += fixes
        return portion

    def grow(self, portion: list[Finding]) -> None:
        """The portion went well."""
        for place in self._fixes.keys() & {place for found in portion for place in places(found)}:
            self._fixes[place] *= 2
        if self._files is not None:
            self._files *= 2

    def shrink(
        self, portion: list[Finding], to_blame: Collection[Extent], later: Collection[Extent] = ()
    ) -> list[Finding]:
        """What is not to be tried again of a portion that did not go well.

        That was because of what is in `to_blame`, or together with others of what is in `later`, which is to wait for
        them; or nobody knows why.
        """
        by_file = _by_file(portion)
        self._later.update(later)
        if later and not to_blame:
            return []
        if not to_blame and len(by_file) > 1:
            self._files = len(by_file) // 2
            return []
        blamed: dict[Extent, list[Finding]] = {place: [] for place in to_blame or [(name,) for name in by_file]}
        for found in portion:
            for place in places(found):
                if place in blamed:
                    blamed[place].append(found)
        alone = {place for place, fixes in blamed.items() if len(fixes) == 1 or self._fixes.get(place) == 1}
        self._fixes |= {place: len(fixes) // 2 for place, fixes in blamed.items() if place not in alone}
        return [found for place, fixes in blamed.items() if place in alone for found in fixes]


def _bound(findings: list[Finding]) -> list[list[Finding]]:
    """The fixes of a file, those together that make the same edit: of what an anchor shares, all or none is to change."""
    bound: dict[Any, list[Finding]] = {}
    for number, finding in enumerate(findings):
        edits: tuple[Edit, ...] = ()
        if finding.document is not None and finding.fix is not None:
            with suppress(CannotEditError):
                edits = operations.edits(finding.document, finding.fix.operations)
        first = next((bound[edit] for edit in edits if edit in bound), bound.setdefault(number, []))
        first.append(finding)
        bound |= dict.fromkeys(edits, first)
    return [fixes for key, fixes in bound.items() if isinstance(key, int) and fixes]


def _by_file(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.file, []).append(finding)
    return found
