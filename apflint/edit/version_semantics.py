"""Differences in the meaning of an object between API versions, and the operations that preserve the meaning.

Sources: `pkg/apis/flowcontrol/*/defaults.go` and `conversion.go` of Kubernetes, and recorded responses of API servers. The
facts are in `apflint.model` and `apflint.releases`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apflint.edit.migration_target import MigrationTarget, serves
from apflint.edit.object_edits import changed_value
from apflint.edit_operations import Insert, Operation, Remove, Rename, Set
from apflint.load.document import GROUP, Document
from apflint.location import field_path
from apflint.model import PRESERVE_ZERO, build_flow_schema, build_priority_level, shares_field
from apflint.releases import API_VERSIONS, PRESERVE_ZERO_MINOR, RELEASES
from apflint.schema_violations import find_violations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.location import Path
    from apflint.model import FlowSchemaSpec, PriorityLevelConfigurationSpec
    from apflint.releases import Release

_DEFAULT_SHARES = 30
_LIMITED = ("spec", "limited")
_ANNOTATION = ("metadata", "annotations", PRESERVE_ZERO)


class Note(NamedTuple):
    """A message about a field in a migration. The message has no final period."""

    path: Path
    message: str
    effect: Literal["kept", "changed", "impossible"]
    """Effect on the meaning of the object. `changed` requires the user's consent. `impossible` is always refused."""


def plan_migration(document: Document, target: MigrationTarget) -> tuple[list[Operation], list[Note]]:
    """Return the operations that adapt the fields of an object to a later API version, and notes for the user.

    The operations do not change the apiVersion itself. If the object cannot be moved, return no
    operations, and notes that state the reason.
    """
    if unreadable := list(_find_unreadable(document, target)):
        return [], unreadable
    operations: list[Operation] = []
    notes: list[Note] = []
    if document.kind == "PriorityLevelConfiguration":
        _convert_shares(document, target, operations, notes)
    after = _migrated(document, operations, target.version)
    if undecodable := list(_find_undecodable(after, target.releases)):
        return [], undecodable  # for example, a field that only the new version defines has a value of the wrong type
    for release in target.releases:
        notes += _find_differences(document, after, release)
    return operations, list(dict.fromkeys(notes))


def stored_spec(document: Document, release: Release) -> FlowSchemaSpec | PriorityLevelConfigurationSpec:
    """Return the spec of an object with all defaults, as an API server of the release stores the spec."""
    if document.kind == "FlowSchema":
        return build_flow_schema(document.value, document).spec
    return build_priority_level(document.value, document, release).spec


def source_release(version: str, target: Release) -> Release:
    """Return the release that defines the meaning of an object of `version` before a migration to the release `target`.

    The result is `target` if this release serves the version. Otherwise, the result is the last earlier release that
    serves the version or, if there is no such release, the first release that serves the version.
    """
    serving = [known for known in RELEASES if serves(known, version)]
    return max((known for known in serving if known.minor <= target.minor), default=serving[0])


def is_older(version: str, other: str) -> bool:
    """Return whether `version` was introduced before `other`."""
    names = [life.name for life in API_VERSIONS]
    return names.index(version) > names.index(other)


def _migrated(document: Document, operations: Iterable[Operation], version: str) -> Document:
    """Return a copy of the object with the changes of `operations` and with the API version `version`.

    The copy has no positions in the source text, because only its values are compared.
    """
    value = changed_value(document.value, operations)
    return Document(document.source, value, lambda: None, api_version=f"{GROUP}/{version}", kind=document.kind)


def _find_unreadable(document: Document, target: MigrationTarget) -> Iterator[Note]:
    """Yield a note for each reason why an object has no clear meaning, so that it cannot be migrated.

    The reasons are duplicate keys, numbers that JSON cannot represent, and values of the wrong type.
    """
    for duplicate in document.duplicates:
        yield Note(duplicate.path, f'duplicate key "{duplicate.path[-1]}"; remove one of them', "impossible")
    if document.not_finite:
        yield Note(document.not_finite[0], "JSON cannot represent infinity and NaN", "impossible")
    yield from _find_undecodable(document, (source_release(document.version, known) for known in target.releases))


def _find_undecodable(document: Document, releases: Iterable[Release]) -> Iterator[Note]:
    for release in dict.fromkeys(releases):
        for violation in find_violations(document.value, document.kind, document.version, release):
            if violation.what != "unknown":
                message = (
                    f"the API server cannot decode the object as {document.version}: expected a value of type"
                    f" {violation.expected}; see `apflint check`"
                )
                yield Note(violation.path, message, "impossible")


def _convert_shares(
    document: Document, target: MigrationTarget, operations: list[Operation], notes: list[Note]
) -> None:
    """Append operations and notes about the shares of a priority level, and about its annotation for zero shares."""
    limited: Any = document.at(*_LIMITED) or {}
    old, new = shares_field(document.version), shares_field(target.version)
    if document.has(*_ANNOTATION) and _must_remove_annotation(document.version, target, limited.get(old)):
        notes.append(Note(_ANNOTATION, _describe_annotation(document.version, target.version), "kept"))
        operations.append(Remove(_ANNOTATION))
    if document.at(*_LIMITED) is None:
        return
    if old != new and new in limited:
        if old in limited:
            message = f"{old} becomes {new}, but {new} is already present as an unknown field of {document.version}; remove one of the two fields"
            notes.append(Note((*_LIMITED, new), message, "impossible"))
        return  # `_find_differences` reports that only the new version knows this field
    if old != new and old in limited:
        operations.append(Rename((*_LIMITED, old), new))
    notes += _keep_shares(document, target, operations)
    if is_older(document.version, "v1beta2") and any(known.has_borrowing for known in target.releases):
        message = (
            "from Kubernetes 1.26 on, this priority level borrows seats of other levels without limit if"
            " borrowingLimitPercent is absent, and lends no seats if lendablePercent is absent"
        )
        notes.append(Note(_LIMITED, message, "kept"))


def _keep_shares(document: Document, target: MigrationTarget, operations: list[Operation]) -> Iterator[Note]:
    """Yield notes if the default number of shares changes, and append an operation that keeps the number of shares."""
    old, new = shares_field(document.version), shares_field(target.version)
    path = (*_LIMITED, old)
    shares = {
        known.name: _effective_shares(document, source_release(document.version, known)) for known in target.releases
    }
    if len(set(shares.values())) > 1:
        meanings = ", ".join(f"{count} in Kubernetes {name}" for name, count in sorted(shares.items()))
        yield Note(
            path, f"if the shares are 0 or absent, their number is {meanings}: write the number of shares", "changed"
        )
    count = min(shares.values())
    migrated = _migrated(document, operations, target.version)
    after = {_effective_shares(migrated, known) for known in target.releases}
    if after != {count}:
        meaning = " or ".join(map(str, sorted(after)))
        message = (
            f"{old} is {'0' if document.at(*path) == 0 else 'absent'}, which means {count} shares in {document.version}"
            f" and {meaning} in {target.version}: set {new} to {count}"
        )
        yield Note(path, message, "kept")
        operations.append(Set(path, count) if document.has(*path) else Insert((*_LIMITED, new), count))
    refusing = next((known for known in target.releases if not known.allows_zero_shares), None)
    if count == 0 and refusing is not None:
        message = f"Kubernetes {refusing.name} rejects a priority level with 0 shares; they are allowed from 1.30 on"
        yield Note(path, message, "changed")


def _effective_shares(document: Document, release: Release) -> int:
    limited = build_priority_level(document.value, document, release).spec.limited
    return limited.shares if limited is not None else _DEFAULT_SHARES


def _must_remove_annotation(version: str, target: MigrationTarget, written: int | None) -> bool:
    """Return whether a migration must remove the annotation that preserves 0 shares (`PRESERVE_ZERO`).

    Return True if a target release rejects the annotation. Return True also if the annotation has no
    effect in `version`, but would change the shares after the migration. `written` is the number of
    shares in the object.
    """
    if any(release.forbids_preserve_zero_annotation(target.version) for release in target.releases):
        return True
    newest = max(release.minor for release in target.releases)
    return version != "v1beta3" and target.version == "v1beta3" and newest >= PRESERVE_ZERO_MINOR and not written


def _describe_annotation(old: str, new: str) -> str:
    annotation = f"remove the annotation {PRESERVE_ZERO}"
    if new == "v1beta3":
        return f"{annotation}: {old} ignores the annotation. In {new}, the annotation would change shares that are 0 or absent from the default to 0"
    if old == "v1beta3":
        return f"{annotation}: from Kubernetes 1.29 on, the API server rejects {new} objects with this annotation. The migration writes the shares instead"
    return f"{annotation}: it has no effect in {old}, and {new} rejects it"


def _find_differences(before: Document, after: Document, release: Release) -> Iterator[Note]:
    """Yield a note for each field that API servers of the release reject or interpret differently after the migration."""
    origin = source_release(before.version, release)
    unknown = [violation.path for violation in find_violations(before.value, before.kind, before.version, origin)]
    remaining = [violation.path for violation in find_violations(after.value, after.kind, after.version, release)]
    for path in remaining:
        message = (
            f"{field_path(path)}: unknown field in {after.version} of Kubernetes {release.name};"
            " the API server rejects the object"
        )
        yield Note(path, message, "changed")
    still_unknown = set(remaining)
    for path in (path for path in unknown if path not in still_unknown):
        message = (
            f"{field_path(path)}: {before.version} of Kubernetes {origin.name} does not have this field, but {after.version}"
            f" of Kubernetes {release.name} has the field, so the field takes effect"
        )
        yield Note(path, message, "changed")
    if not unknown and stored_spec(before, origin) != stored_spec(after, release):
        message = f"the spec would have another meaning in {after.version} of Kubernetes {release.name}"
        yield Note(("spec",), message, "changed")
