"""What a second check finds after fixes, held against the first: what is gone, what is new, and what was only hidden."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.checks import VALIDATION
from apflint.edit.origins import told
from apflint.edit.suspects import CLASHES
from apflint.edit.veils import Veils, edited_field
from apflint.finding import SEVERITIES, field_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from apflint.edit.origins import Origins
    from apflint.finding import Finding, ObjectRef, Operation

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

    def find_local(self, excess: list[Finding]) -> list[Finding]:
        """Return the new findings of `excess` about what the server says of a single field: other fields do not matter."""
        return [found for found in excess if found.rule in VALIDATION and identity(found) not in self._known]

    def find_causes(
        self, consequences: Iterable[Finding], origins: Origins, reason: str = ""
    ) -> tuple[tuple[Finding, str], ...]:
        """Return the mended findings that have led to `consequences`, findings in or below the fields that were edited.

        Each comes with `reason`, or one that names the consequence. The lines of `consequences` are those of the text
        as it was given, `origins` those of the mended findings. Objects of a file may have the same name: the closest
        finding above the consequence is the one.
        """
        edited: dict[tuple[Any, ...], list[tuple[int, Finding]]] = {}
        for found in self._mended:
            line = told(found, origins).span.line
            for operation in found.fix.operations if found.fix else ():
                edited.setdefault((found.file, found.object, _changed(operation)), []).append((line, found))
        causes: dict[int, tuple[Finding, str]] = {}
        for found in consequences:
            fields = [*map(_changed, found.fix.operations if found.fix else ()), found.field]
            nearby = (edited.get((found.file, found.object, above)) for field in fields for above in _above(field))
            if candidates := next(filter(None, nearby), None):
                line = found.span.line
                cause = max(candidates, key=lambda entry: (entry[0] <= line, -abs(line - entry[0])))[1]
                causes.setdefault(id(cause), (cause, reason or _reason([cause], [found])))
        return tuple(causes.values())

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


def _changed(operation: Operation) -> str:
    """Return the field that an operation changes: of an item that is removed the list."""
    if operation.what == "remove" and isinstance(operation.path[-1], int):
        return field_path(operation.path[:-1])
    return edited_field(operation)


def _above(field: str) -> Iterator[str]:
    """Yield a field path and the paths above it, the closest first."""
    while field:
        yield field
        field = field[: max(field.rfind("."), field.rfind("["), 0)]


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
