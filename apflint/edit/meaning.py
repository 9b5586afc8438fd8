"""What has to change in an object for it to mean the same in a later API version, and what cannot mean the same.

From what the servers do with each version (`pkg/apis/flowcontrol/*/defaults.go` and `conversion.go` of Kubernetes, and
recordings of them); `apflint.model` and `apflint.releases` hold the facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint.edit.operations import changed_value
from apflint.edit.versions import Target, age, source
from apflint.fix import Insert, Operation, Remove, Rename, Set
from apflint.load.document import GROUP, Document
from apflint.location import field_path
from apflint.model import PRESERVE_ZERO, flow_schema, priority_level, shares_field
from apflint.releases import PRESERVE_ZERO as PRESERVE_ZERO_MINOR
from apflint.schema import find_violations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.location import Path
    from apflint.model import FlowSchemaSpec, PriorityLevelConfigurationSpec
    from apflint.releases import Release


class Note(NamedTuple):
    """A sentence about a place, without its end."""

    path: Path
    message: str
    weight: Literal["note", "different", "impossible"]
    """`different`: the object will not mean the same, so it is refused unless that is accepted; `impossible`: in any case."""


class Plan(NamedTuple):
    """What to do with an object beside its apiVersion, and what is to be told."""

    operations: tuple[Operation, ...]
    notes: tuple[Note, ...]


_SHARES = ("spec", "limited")
_ANNOTATION = ("metadata", "annotations", PRESERVE_ZERO)


def planned(document: Document, target: Target) -> Plan:
    """How to bring an object to a later version."""
    unreadable = tuple(_unreadable(document, target))
    if unreadable:
        return Plan((), unreadable)
    operations: tuple[Operation, ...] = ()
    notes: list[Note] = []
    if document.kind == "PriorityLevelConfiguration":
        operations = tuple(_operations(document, target, notes))
    after = moved(document, operations, target.version)
    if undecodable := tuple(_undecodable(after, target.releases)):
        return Plan((), undecodable)  # an unknown field that the new version knows
    for release in target.releases:
        notes += _differences(document, after, release)
    return Plan(operations, tuple(dict.fromkeys(notes)))


def moved(document: Document, operations: tuple[Operation, ...], version: str) -> Document:
    """The object as it is to be after the operations, in a version. Only its value can be asked for, no places."""
    value = changed_value(document.value, operations)
    return Document(document.source, value, lambda: None, api_version=f"{GROUP}/{version}", kind=document.kind)


def meaning(document: Document, release: Release) -> FlowSchemaSpec | PriorityLevelConfigurationSpec:
    """The spec with all defaults, as a server of the release stores it."""
    if document.kind == "FlowSchema":
        return flow_schema(document.value, document).spec
    return priority_level(document.value, document, release).spec


def _unreadable(document: Document, target: Target) -> Iterator[Note]:
    """Why nothing can be said about the meaning of an object."""
    for duplicate in document.duplicates:
        yield Note(duplicate.path, f'the key "{duplicate.path[-1]}" is there twice. Remove one', "impossible")
    if document.not_finite:
        yield Note(document.not_finite[0], "infinity is no number of JSON", "impossible")
    yield from _undecodable(document, (source(document.version, known) for known in target.releases))


def _undecodable(document: Document, releases: Iterable[Release]) -> Iterator[Note]:
    for release in dict.fromkeys(releases):
        for found in find_violations(document.value, document.kind, document.version, release):
            if found.what != "unknown":
                message = (
                    f"the API server cannot decode it as {document.version}: a value of type {found.expected} is wanted."
                    " See `apflint check`"
                )
                yield Note(found.path, message, "impossible")


def _operations(document: Document, target: Target, notes: list[Note]) -> Iterator[Operation]:
    """Shares and the annotation that goes with them."""
    annotated = document.has(*_ANNOTATION)
    limited: Any = document.at("spec", "limited")
    old, new = shares_field(document.version), shares_field(target.version)
    before = {_shares(document, source(document.version, release), release) for release in target.releases}
    written = None if limited is None else limited.get(old)
    if annotated and _annotation_harms(document.version, target, written):
        notes.append(Note(_ANNOTATION, _annotation_told(document.version, target.version), "note"))
        yield Remove(_ANNOTATION)
        annotated = False
    if limited is None:
        return
    if old != new and new in limited and old in limited:
        message = f"{new} is no field of {document.version}, and {old} is to become it. Remove one of the two"
        notes.append(Note((*_SHARES, new), message, "impossible"))
        return
    if old != new and old in limited:
        yield Rename((*_SHARES, old), new)
    elif old != new and new in limited:
        return  # an unknown field that is about to count: `_differences` tells
    if len({shares for _, shares in before}) > 1:
        told = ", ".join(f"{shares} in Kubernetes {name}" for name, shares in sorted(before))
        notes.append(Note((*_SHARES, old), f"shares that are 0 or absent mean {told}. Write the number", "different"))
    yield from _shares_kept(target, limited, min(shares for _, shares in before), annotated, (old, new), notes)
    if age(document.version) < age("v1beta2") and any(release.has_borrowing for release in target.releases):
        message = (
            "from Kubernetes 1.26 on this level may borrow the seats of others without limit, unless"
            " borrowingLimitPercent is set; it lends none, unless lendablePercent is"
        )
        notes.append(Note(_SHARES, message, "note"))


def _shares_kept(
    target: Target, limited: dict[str, Any], before: int, annotated: bool, fields: tuple[str, str], notes: list[Note]
) -> Iterator[Operation]:
    """Writes the number out where the target would read 0 or nothing as another one than the source does."""
    old, new = fields
    written = limited.get(old)
    after = {_defaulted(written, target.version, release, annotated=annotated) for release in target.releases}
    if after != {before}:
        said = "0" if written == 0 else "absent"
        meant = " or ".join(map(str, sorted(after)))
        message = (
            f"{old} is {said}, which means {before} shares up to now, and in {target.version} {meant}:"
            f" {new} is written as {before}"
        )
        notes.append(Note((*_SHARES, old), message, "note"))
        yield (Set((*_SHARES, old), before) if old in limited else Insert((*_SHARES, new), before))
    if before == 0 and (refusing := [release for release in target.releases if not release.allows_zero_shares]):
        message = f"the level has 0 shares, which Kubernetes {refusing[0].name} refuses: it allows them from 1.30 on"
        notes.append(Note((*_SHARES, old), message, "different"))


def _defaulted(written: int | None, version: str, release: Release, *, annotated: bool) -> int:
    """As `_shares` of the model, of which this is held against in `_differences`."""
    kept = release.keeps_zero_shares(version, annotated=annotated)
    if written is None:
        return 0 if kept and version != "v1" else 30
    return written if written or kept else 30


def _shares(document: Document, release: Release, asked: Release) -> tuple[str, int]:
    """The release whose meaning is asked for, and the shares after defaulting; 30 where there is no `limited`."""
    limited = priority_level(document.value, document, release).spec.limited
    return asked.name, 30 if limited is None else limited.shares


def _annotation_harms(version: str, target: Target, written: int | None) -> bool:
    """Whether the annotation would be refused, or would begin to mean something, in the target."""
    if any(release.forbids_preserve_zero_annotation(target.version) for release in target.releases):
        return True
    newest = max(release.minor for release in target.releases)
    return version != "v1beta3" and target.version == "v1beta3" and newest >= PRESERVE_ZERO_MINOR and not written


def _annotation_told(old: str, new: str) -> str:
    name = f"the annotation {PRESERVE_ZERO}"
    if new == "v1beta3":
        return f"{name} meant nothing up to now, and would make 0 or absent shares 0 in {new}: it is removed"
    if old == "v1beta3":
        return f"{name} is refused in {new} from Kubernetes 1.29 on: it is removed, and the shares say what it said"
    return f"{name} meant nothing in {old}, and {new} refuses it: it is removed"


def _differences(before: Document, after: Document, release: Release) -> Iterator[Note]:
    """What a server of the release would refuse, or take otherwise than the one before."""
    origin = source(before.version, release)
    unknown = {found.path: found for found in find_violations(before.value, before.kind, before.version, origin)}
    remaining = find_violations(after.value, after.kind, after.version, release)
    for found in remaining:
        place = f"{field_path(found.path)} is no field of {after.version} in Kubernetes {release.name}"
        if found.what != "unknown":
            place = f"{field_path(found.path)} is no {found.expected}, as it has to be in {after.version}"
        yield Note(found.path, f"{place}: the API server refuses the object", "different")
    for path in unknown.keys() - {found.path for found in remaining}:
        message = (
            f"{field_path(path)} is no field of {before.version} in Kubernetes {origin.name}, and is one of"
            f" {after.version} in {release.name}: it begins to count"
        )
        yield Note(path, message, "different")
    if not unknown and meaning(before, origin) != meaning(after, release):
        message = f"the spec would not be the same with {after.version} in Kubernetes {release.name}"
        yield Note(("spec",), message, "different")
