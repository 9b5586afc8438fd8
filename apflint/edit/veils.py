"""What could not be found as long as something else was: it is no fault of a fix that it comes to light."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import VALIDATION
from apflint.finding import field_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.finding import Finding, Operation

_DECODING = frozenset({"APF002", "APF101", "APF102", "APF703"})
"""Rules about what a server cannot decode: of such an object nobody says what it means."""
_SELECTING = frozenset({"APF207", "APF302", "APF303"})
"""Rules about the type of a level or a response and the kind of a subject: what goes with another is not looked at."""


def hides(finding: Finding) -> bool:
    """Whether nothing is said about some things as long as this is found: the server rejects the object, or it is not known."""
    return finding.apiserver is not None or is_unread(finding)


def is_unread(finding: Finding) -> bool:
    """Whether a finding is about an object that is not known as one of ours before it is mended."""
    return finding.document is None and finding.rule < "APF9"


class _Veil(NamedTuple):
    """Over an object, or what begins with `part` in it; what rules find that is not hidden by it."""

    part: str
    seen: frozenset[str]


class Veils:
    """Of findings that are mended."""

    def __init__(self, mended: Iterable[Finding]) -> None:
        mended = tuple(mended)
        self._rejected = any(map(hides, mended))
        self._unread = {found.file for found in mended if is_unread(found)}
        self._veils: dict[tuple[str, object], set[_Veil]] = {}
        self._made: dict[tuple[str, object], set[str]] = {}
        for found in mended:
            if found.rule in _DECODING | _SELECTING and found.fix is not None:
                self._lift(found, set(map(edited_field, found.fix.operations)))

    def _lift(self, found: Finding, made: set[str]) -> None:
        # Of which name the object is by then is not sure where that is what is mended: then it may be any of the file.
        renamed = any(f"{field}.".startswith("metadata.") for field in made)
        place = found.file, None if renamed else found.object
        self._made.setdefault(place, set()).update(made)
        veils = self._veils.setdefault(place, set())
        if found.rule in _DECODING:
            veils.add(_Veil("", _DECODING))
        else:
            veils.update(_Veil(f"{field.rpartition('.')[0]}.", frozenset({found.rule}) | _DECODING) for field in made)

    def hid(self, finding: Finding) -> bool:
        """Whether a finding could not be found before.

        One in the very field that was mended has come with the fix: a value that is wrong there was meant for another one.
        """
        if finding.file in self._unread or (self._rejected and finding.rule not in VALIDATION):
            return True
        places = ((finding.file, finding.object), (finding.file, None))
        if any(finding.field in self._made.get(place, ()) for place in places):
            return False
        return any(
            finding.rule not in veil.seen and f"{finding.field}.".startswith(veil.part)
            for place in places
            for veil in self._veils.get(place, ())
        )


def edited_field(operation: Operation) -> str:
    """Return the field that has the outcome of an operation."""
    renamed = operation.what == "rename"
    return field_path((*operation.path[:-1], str(operation.value)) if renamed else operation.path)
