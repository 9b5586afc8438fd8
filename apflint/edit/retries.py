"""Which refused fixes to try again: those of which the reason may have gone with another fix."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.edit.consequences import places

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from apflint.edit.consequences import Extent
    from apflint.finding import Finding


class Retries:
    """What was made since a fix was refused, as far as its reason goes."""

    def __init__(self) -> None:
        self._made: Counter[Extent] = Counter()
        self._refused: dict[Hashable, tuple[Extent, int]] = {}

    def made(self, findings: Iterable[Finding]) -> None:
        """These were mended."""
        for found in findings:
            self._made.update(places(found))

    def refused(self, key: Hashable, place: Extent) -> None:
        """A fix was not made, for a reason that has to do with the place only; it is known by `key`."""
        self._refused[key] = place, self._made[place]

    def worthwhile(self, key: Hashable) -> bool:
        """Whether something that could matter was made since."""
        place, made = self._refused[key]
        return self._made[place] > made
