"""How many fixes to try at once, when not all of them go well."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.edit.consequences import places

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apflint.edit.consequences import Extent
    from apflint.finding import Finding


class Portions:
    """All at first; half as many, in the objects or files concerned, each time some do not go well; then more and more again."""

    def __init__(self) -> None:
        self._fixes: dict[Extent, int] = {}
        """How many in a file or in an object; all where it is not named."""
        self._files: int | None = None
        """In how many files; None is all of them."""

    def of(self, findings: Iterable[Finding]) -> list[Finding]:
        """The next portion."""
        by_file = _by_file(findings)
        taken: Counter[Extent] = Counter()
        portion = []
        for name in list(by_file)[: self._files]:
            for found in by_file[name]:
                around = places(found)
                if all(taken[place] < self._fixes.get(place, len(by_file[name])) for place in around[1:]):
                    taken.update(around)
                    portion.append(found)
        return portion

    def grow(self, portion: list[Finding]) -> None:
        """The portion went well."""
        for place in self._fixes.keys() & {place for found in portion for place in places(found)}:
            self._fixes[place] *= 2
        if self._files is not None:
            self._files *= 2

    def shrink(self, portion: list[Finding], to_blame: Collection[Extent]) -> list[Finding]:
        """The portion did not go well, because of what is in `to_blame`, or nobody knows why: what is not to be tried again."""
        by_file = _by_file(portion)
        if not to_blame and len(by_file) > 1:
            self._files = len(by_file) // 2
            return []
        blamed: dict[Extent, list[Finding]] = {place: [] for place in to_blame or [(name,) for name in by_file]}
        for found in portion:
            for place in places(found):
                if place in blamed:
                    blamed[place].append(found)
        self._fixes |= {place: len(fixes) // 2 for place, fixes in blamed.items() if len(fixes) > 1}
        return [fixes[0] for fixes in blamed.values() if len(fixes) == 1]


def _by_file(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.file, []).append(finding)
    return found
