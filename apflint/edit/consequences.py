"""What a second check finds after fixes, held against the first: what is gone, what is new, and what was only hidden."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.checks import VALIDATION
from apflint.edit.suspects import CLASHES
from apflint.edit.veils import Veils
from apflint.finding import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.finding import Finding, ObjectRef

    Extent = tuple[()] | tuple[str] | tuple[str, ObjectRef | None]
    """Everything, a file, or an object of a file: what a reason against a fix has to do with."""


def identity(finding: Finding) -> tuple[object, ...]:
    """What a finding is known by when its line has moved."""
    return finding.rule, finding.file, finding.object, finding.field, finding.message


def places(finding: Finding) -> tuple[Extent, ...]:
    """What a finding is in, from the largest to the smallest."""
    return (), (finding.file,), (finding.file, finding.object)


class Allowance:
    """What may still be found when some findings are mended: as much of each rule in a file as there is of others."""

    def __init__(self, before: Iterable[Finding], mended: list[Finding]) -> None:
        before = tuple(before)
        self._mended = mended
        self._known = {identity(found) for found in before}
        self._parts = set(map(_part, before))
        self._allowed = _counted(before, _group)
        self._allowed.subtract(map(_group, mended))
        self._allowed_of_object = _counted(before, _object)
        self._allowed_of_object.subtract(map(_object, mended))
        self._veils = Veils(mended)

    def excess(self, after: Iterable[Finding]) -> list[Finding]:
        """The findings of rules that there are more of in a file than there may be, and that could be found before."""
        # What was known is not hidden: it is counted as allowed, and must not make room for something new.
        counted = [found for found in after if identity(found) in self._known or not self._veils.hid(found)]
        counts = _counted(counted, _group)
        return [found for found in counted if counts[_group(found)] > self._allowed[_group(found)]]

    def came_to_light(self, excess: list[Finding]) -> list[Finding]:
        """Those of `excess` that were not found before, where it is certain which those are.

        To mend others in their place would leave a finding that our fixes have brought.
        """
        new = [found for found in excess if identity(found) not in self._known]
        counts, there = _counted(new, _group), _counted(excess, _group)
        return [found for found in new if counts[_group(found)] == there[_group(found)] - self._allowed[_group(found)]]

    def clashes(self, excess: list[Finding]) -> list[Finding]:
        """The new clashes of FlowSchemas among `excess`: not those told in other words because another one takes part now."""
        counts = _counted(excess, _object)
        return [
            found
            for found in excess
            if found.rule in CLASHES
            and _part(found) not in self._parts
            and counts[_object(found)] > self._allowed_of_object[_object(found)]
        ]

    def reasons_of(self, known: Mapping[Extent, list[Finding]]) -> dict[Extent, str]:
        """Why the fixes in some places are not to be made, as sentences without their ends: what they bring is known."""
        mended = self._by_place()
        return {place: _reason(mended[place], new) for place, new in known.items()}

    def reasons(self, excess: list[Finding]) -> tuple[dict[Extent, str], str]:
        """Why the fixes are not to be made: by what that has to do with only, where that is known, and in a word.

        Sentences without their ends.
        """
        blamed = [found for found in excess if identity(found) not in self._known] or excess
        by_file: dict[str, list[Finding]] = {}
        for found in blamed:
            by_file.setdefault(found.file, []).append(found)
        mended = self._by_place()
        counts = _counted(excess, _object)
        reasons: dict[Extent, str] = {}
        for name, there in by_file.items():
            # What the server says of one object has nothing to do with other files; what we say of a whole set may have.
            if (name,) not in mended or any(found.rule not in VALIDATION for found in there):
                continue
            # Nor has it with other objects, where it is certain in which ones there is more than before.
            objects: dict[Extent, list[Finding]] = {}
            for found in there:
                place = name, found.object
                if place in mended and counts[_object(found)] > self._allowed_of_object[_object(found)]:
                    objects.setdefault(place, []).append(found)
            reasons |= {place: _reason(mended[place], new) for place, new in (objects or {(name,): there}).items()}
        return reasons, _reason(self._mended, blamed)

    def _by_place(self) -> dict[Extent, list[Finding]]:
        mended: dict[Extent, list[Finding]] = {}
        for found in self._mended:
            for place in places(found):
                mended.setdefault(place, []).append(found)
        return mended


def _group(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.file


def _part(finding: Finding) -> tuple[Any, ...]:
    return finding.rule, finding.file, finding.object, finding.field


def _object(finding: Finding) -> tuple[Any, ...]:
    return finding.rule, finding.file, finding.object


def _counted(findings: Iterable[Finding], of: Callable[[Finding], tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """How many findings there are of a rule in a file, or in an object."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for found in findings:
        counts[of(found)] += 1 + found.more
    return counts


def _reason(mended: list[Finding], blamed: list[Finding]) -> str:
    places = {(*_group(found), found.field) for found in mended}
    again = [found for found in blamed if (*_group(found), found.field) in places]
    if again:
        return f"{again[0].rule} would still be found there: {again[0].message}"
    new = min(blamed, key=lambda found: SEVERITIES.index(found.severity))
    place = f"line {new.span.line}" if {new.file} == {found.file for found in mended} else f"{new.file}:{new.span.line}"
    return f"then there would be {new.rule} in {place}: {new.message}"
