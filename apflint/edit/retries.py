"""Which refused fixes to try again: those of which the reason may have gone with another fix."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from apflint.finding import Finding


class Scope(IntEnum):
    """What a reason to refuse a fix comes from."""

    ALL = 0
    """All files together."""
    FILE = 1
    """The text of the file: what an anchor shares may be in another object."""
    OBJECT = 2
    """What the server says of the object, whatever is beside it."""


class Retries:
    """What was made since a fix was refused, as far as its reason goes."""

    def __init__(self) -> None:
        self._made: Counter[tuple[Any, ...]] = Counter()
        self._refused: dict[Hashable, tuple[tuple[Any, ...], int]] = {}

    def made(self, findings: Iterable[Finding]) -> None:
        """These were mended."""
        for found in findings:
            self._made.update(_place(found, scope) for scope in Scope)

    def refused(self, key: Hashable, finding: Finding, scope: Scope) -> None:
        """The fix of a finding was not made; it is known by `key`."""
        place = _place(finding, scope)
        self._refused[key] = place, self._made[place]

    def worthwhile(self, key: Hashable) -> bool:
        """Whether something that could matter was made since."""
        place, made = self._refused[key]
        return self._made[place] > made


def _place(finding: Finding, scope: Scope) -> tuple[Any, ...]:
    return (finding.file, finding.object)[:scope]
