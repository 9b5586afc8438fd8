"""APF002, APF101, APF102, APF703: what a manifest is made of, before what it says. The API server stops here with 400."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.finding import Cause, Elsewhere, Problem
from apflint.fixes.unknown_field import (
    RBAC_ROLE_FIELDS,
    RBAC_SUBJECT_FIELDS,
    find_intended_kind,
    find_owner_of_fields,
    find_owners,
    find_synonym,
    fix_unknown_field,
    is_subject_field,
    rename_field,
)
from apflint.fixes.wrong_type import describe_not_finite, describe_wrong_type, fix_wrong_type
from apflint.fixes.yaml_values import scalar_text
from apflint.location import Path, Place, TextRange, field_path
from apflint.model import SUBJECT_FIELDS, shares_field
from apflint.releases import BORROWING, EXEMPT_FIELD
from apflint.schema import find_field_paths
from apflint.wording import listed, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.fix import Fix
    from apflint.load.document import Document
    from apflint.releases import Release
    from apflint.schema import Violation
    from apflint.workspace import Manifest, Workspace

_FIELD_SINCE = {"exempt": EXEMPT_FIELD, "lendablePercent": BORROWING, "borrowingLimitPercent": BORROWING}
_SHARES = ("assuredConcurrencyShares", "nominalConcurrencyShares")


def duplicate_key(workspace: Workspace) -> Iterator[Problem]:
    """APF002."""
    strict = workspace.release.strict_decoding
    for manifest in workspace.manifests:
        document = manifest.document
        for duplicate in document.duplicates:
            how = "duplicate key"
            if duplicate.merged:
                how = "the merge key `<<` brings this key as well, and the API server takes an override for a duplicate"
            effect = (
                "The API server rejects the object; kubectl silently keeps the last one. Remove one of them"
                if strict
                else f"Kubernetes {workspace.release.name} silently keeps the last one. Remove one of them"
            )
            yield Problem(
                Place(document, duplicate.path, key=True, known_offsets=(duplicate.key.start, duplicate.key.end)),
                f"{quote(duplicate.path[-1])}: {how}. {effect}",
                Cause("BadRequest", field_path(duplicate.path)) if strict else None,
                (Elsewhere(TextRange(document.source, duplicate.first.start, duplicate.first.end), "the first one"),),
                severity=None if strict else "warning",
            )


def unknown_field(workspace: Workspace) -> Iterator[Problem]:
    """APF101."""
    for manifest in workspace.manifests:
        for violation in manifest.violations:
            if violation.what == "unknown" and not _is_renamed(violation):
                message = _unknown(manifest, violation, workspace.release)
                fix = fix_unknown_field(manifest.document, violation, workspace.release)
                yield _dropped(manifest.document, violation, message, workspace.release, fix)


def renamed_field(workspace: Workspace) -> Iterator[Problem]:
    """APF703."""
    for manifest in workspace.manifests:
        for violation in manifest.violations:
            if violation.what == "unknown" and _is_renamed(violation):
                version = manifest.document.version
                name = shares_field(version)
                message = (
                    f"{quote(violation.path[-1])} is called {quote(name)} in {version}."
                    " The API server rejects the object if the client asks for strict validation, as kubectl does; for other"
                    " clients it drops the value with a warning, and the level gets 30 shares"
                )
                if not workspace.release.strict_decoding:
                    message = (
                        f"{quote(violation.path[-1])} is called {quote(name)} in {version}."
                        f" Kubernetes {workspace.release.name} drops it silently, and the level gets 30 shares; kubectl refuses"
                        " the manifest, unless validation is off"
                    )
                # 0 shares were 30 by the old name, and are none by the new one: somebody has to say which is meant.
                fix = rename_field(manifest.document, violation.path, name, safe=violation.got != 0)
                yield _dropped(manifest.document, violation, message, workspace.release, fix)


def wrong_type(workspace: Workspace) -> Iterator[Problem]:
    """APF102."""
    for manifest in workspace.manifests:
        document = manifest.document
        seen: set[Path] = set()
        for violation in manifest.violations:
            if violation.what != "unknown":
                seen.add(violation.path)
                message, advice = describe_wrong_type(document, violation)
                yield Problem(
                    Place(document, violation.path),
                    f"{message}. {advice[0].upper()}{advice[1:]}" if advice else message,
                    Cause("BadRequest", field_path(_reported(violation.path))),
                    fix=fix_wrong_type(document, violation),
                )
        for path in document.not_finite:
            if path not in seen:
                cause = Cause("BadRequest", field_path(path))
                yield Problem(Place(document, path), describe_not_finite(document.text(path)), cause)


def _reported(path: Path) -> Path:
    """The path in the server's words: it names the map of labels or annotations, not the one among them."""
    return path[:2] if path[:2] in (("metadata", "labels"), ("metadata", "annotations")) else path


def _is_renamed(violation: Violation) -> bool:
    return violation.path[:2] == ("spec", "limited") and len(violation.path) == 3 and violation.path[-1] in _SHARES


def _dropped(document: Document, violation: Violation, message: str, release: Release, fix: Fix | None) -> Problem:
    """A field that strict servers refuse and those before 1.25 drop."""
    if release.strict_decoding:
        # The server puts a dot before an unknown field whatever is in it.
        parent, name = field_path(violation.path[:-1]), violation.path[-1]
        cause = Cause("BadRequest", f"{parent}.{name}" if parent else str(name))
        return Problem(Place(document, violation.path, key=True), message, cause, fix=fix)
    return Problem(Place(document, violation.path, key=True), message, fix=fix, severity="warning")


def _unknown(manifest: Manifest, violation: Violation, release: Release) -> str:
    document, name = manifest.document, str(violation.path[-1])
    where = field_path(violation.path[:-1]) or f"a {document.kind}"
    fate = (
        ""
        if release.strict_decoding
        else f" Kubernetes {release.name} drops it silently; kubectl refuses the manifest, unless validation is off."
    )
    message = f"{quote(name)} is no field of {where} in {document.version}.{fate}"
    if release.minor < _FIELD_SINCE.get(name, 0):
        return f"{message} It came with Kubernetes 1.{_FIELD_SINCE[name]}"
    if habit := _rbac_habit(document, violation):
        return f"{message} {habit}"
    if name in RBAC_ROLE_FIELDS:
        return f"{message} It is a field of RBAC roles. FlowSchemas do not have it: leave it out"
    if name.startswith("x-"):
        return f"{message} Kubernetes has no extension fields: put an anchor where it is used first"
    if hint := _synonym(document, violation, release):
        return f"{message} {hint}"
    if "\u00a0" in name:
        return f"{message} Its line is indented with no-break spaces (U+00A0), which YAML takes for text"
    if hint := suggest(name, violation.known):
        return f"{message}{hint}"
    elsewhere = find_field_paths(name, document.kind, document.version, release)
    if elsewhere:
        return f"{message} There is a field of this name in {listed(_places(elsewhere))}: is it one level off?"
    if owner := find_owner_of_fields(document, violation, release):
        return f"{message} {_other_owner(document, violation, owner)}"
    return f"{message} Its fields are {listed(violation.known, 'and')}"


def _synonym(document: Document, violation: Violation, release: Release) -> str | None:
    """A question for the field that people call by the name of an unknown one, and for its place if that is elsewhere."""
    other = find_synonym(str(violation.path[-1]), document.at(*violation.path), document.version)
    if other is None or other in violation.known:
        return other and f"Did you mean {quote(other)}?"
    owners = find_owners(other, document, release)
    return f"Did you mean {quote(other)} in {listed(sorted(owners))}?" if owners else None


def _other_owner(document: Document, violation: Violation, owner: str) -> str:
    """A sentence on the mapping that has the fields of an unknown one."""
    parent, _, name = owner.rpartition(".")
    if parent == field_path(violation.path[:-1]) and not document.has(*violation.path[:-1], name):
        return f"Did you mean {quote(name)}?"
    return f"Its fields belong in {owner}"


def _places(paths: list[str] | tuple[str, ...]) -> list[str]:
    return [path or "the object itself" for path in list(paths)[:3]]


def _rbac_habit(document: Document, violation: Violation) -> str | None:
    """Subjects written as in a RoleBinding: the name beside the kind (APF101's most frequent cause)."""
    path = violation.path
    if not is_subject_field(document, path):
        return None
    if path[-1] in RBAC_SUBJECT_FIELDS:
        return "Subjects of RBAC have it; subjects of a FlowSchema do not: leave it out"
    if path[-1] not in ("name", "namespace"):
        return None
    subject = document.at(*path[:-1])
    kind = find_intended_kind(subject)
    if kind is None or not isinstance(subject, dict):
        return None
    member = SUBJECT_FIELDS[kind]
    if path[-1] == "namespace" and "name" in subject:
        return f"It goes into {quote(member)} with the name" if kind == "ServiceAccount" else None
    name, namespace = (_quoted(document, (*path[:-1], part), subject.get(part)) for part in ("name", "namespace"))
    inner = f"{{namespace: {namespace}, name: {name}}}" if kind == "ServiceAccount" else f"{{name: {name}}}"
    return f"Subjects are written otherwise than in RBAC: `kind: {kind}` with `{member}: {inner}`"


def _quoted(document: Document, path: Path, value: Any) -> str:
    """The text at `path` in quotes, as it is written where YAML reads a boolean or a number in it."""
    if isinstance(value, bool | int | float):
        value = scalar_text(document, path)
    return json.dumps(value if isinstance(value, str) and value else "...")
