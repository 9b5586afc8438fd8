"""APF001 to APF005, APF101, APF102, APF703: text that apflint cannot read, and objects that the API server cannot decode.

The API server answers 400 to an object that it cannot decode, and does not validate the object.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.edit_operations import Edit, Fix
from apflint.finding import Cause, Elsewhere, Problem, bad_request
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
from apflint.fixes.wrong_type import describe_not_finite, describe_wrong_type, fix_wrong_type, suggest_type
from apflint.fixes.yaml_values import scalar_text
from apflint.location import Path, Place, TextRange, field_path
from apflint.model import SUBJECT_FIELDS, shares_field
from apflint.releases import BORROWING_MINOR, EXEMPT_FIELD_MINOR, api_version
from apflint.schema import find_field_paths
from apflint.spelling import did_you_mean
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.apf_objects import LoadProblem
    from apflint.load.document import Document
    from apflint.releases import Release
    from apflint.schema_violations import Violation
    from apflint.workspace import Workspace

_FIELD_SINCE = {
    "exempt": EXEMPT_FIELD_MINOR,
    "lendablePercent": BORROWING_MINOR,
    "borrowingLimitPercent": BORROWING_MINOR,
}
_RENAMED = {("spec", "limited", f"{kind}ConcurrencyShares") for kind in ("assured", "nominal")}
_DOCUMENT_NOT_CHECKED = "The document is not checked."
_MAX_NAMED_PLACES = 3


def syntax_error(workspace: Workspace) -> Iterator[Problem]:
    """APF001: report text that is not valid YAML or JSON."""
    return _unreadable(workspace, "syntax", _DOCUMENT_NOT_CHECKED)


def unrendered_template(workspace: Workspace) -> Iterator[Problem]:
    """APF003: report templates, patches and other text from which a manifest has to be generated first."""
    return _unreadable(workspace, "template", _DOCUMENT_NOT_CHECKED)


def unsafe_document(workspace: Workspace) -> Iterator[Problem]:
    """APF004: report documents that are unsafe or too large to parse."""
    return _unreadable(workspace, "unsafe", _DOCUMENT_NOT_CHECKED)


def not_an_apf_object(workspace: Workspace) -> Iterator[Problem]:
    """APF005: report objects that are no APF objects, but were probably intended as APF objects."""
    return _unreadable(workspace, "not-apf", "The object is not checked.")


def _unreadable(workspace: Workspace, kind: str, *notes: str) -> Iterator[Problem]:
    for problem in workspace.problems:
        if problem.kind == kind:
            yield Problem(
                problem.place,
                problem.message,
                Cause("BadRequest", "") if problem.is_rejected else None,
                notes=notes,
                help=problem.help,
                fix=_correct(problem),
                is_template=kind == "template",
            )


def _correct(problem: LoadProblem) -> Fix | None:
    """Return an unsafe fix that writes the apiVersion or kind which was probably intended.

    Return None if the problem has no correction.
    """
    if problem.correction is None:
        return None
    old, new = problem.correction
    at = problem.place.source.text.rfind(old, *problem.place.offsets)
    if at < 0 or (api_version(new.rpartition("/")[2]) is None and "/" in new):
        return None
    return Fix(f"change {quote(old)} to {quote(new)}", safe=False, edits=(Edit(at, at + len(old), new),))


def duplicate_key(workspace: Workspace) -> Iterator[Problem]:
    """APF002: report keys that occur twice in a mapping."""
    release = workspace.release
    reader = "kubectl" if release.strict_decoding else f"Kubernetes {release.name}"
    for manifest in workspace.manifests:
        for duplicate in manifest.document.duplicates:
            key, first = duplicate.key, duplicate.first
            notes = ("The API server treats the override of a merged key as a duplicate.",) if duplicate.merged else ()
            problem = bad_request(
                Place(manifest.document, duplicate.path, key=True, known_offsets=(key.start, key.end)),
                f"duplicate key {quote(duplicate.path[-1])}{', merged by <<' if duplicate.merged else ''}",
                notes=(*notes, f"{reader} silently keeps the last value."),
                help="remove one of the duplicates",
                related=(Elsewhere(TextRange(manifest.document.source, first.start, first.end), "the first one"),),
            )
            yield _unless_lenient(problem, release)


def _unless_lenient(problem: Problem, release: Release) -> Problem:
    """Return `problem`, unchanged for releases from 1.25 on, whose API server rejects the object.

    For earlier releases, whose API server silently accepts the object, return the problem with severity `warning`.
    """
    return problem if release.strict_decoding else problem._replace(apiserver=None, severity="warning")


def unknown_field(workspace: Workspace) -> Iterator[Problem]:
    """APF101: report fields that do not exist in the API version of the object."""
    release = workspace.release
    for document, violation in _unknown_fields(workspace, renamed=False):
        notes, suggestion = _explain(document, violation, release)
        if not release.strict_decoding:
            notes += (f"Kubernetes {release.name} silently drops the field. kubectl rejects the manifest.",)
        problem = _reject_field(
            document,
            violation,
            f"unknown field {quote(violation.path[-1])} in {field_path(violation.path[:-1]) or document.kind}",
            notes=notes,
            help=suggestion,
            fix=fix_unknown_field(document, violation, release),
        )
        yield _unless_lenient(problem, release)


def renamed_field(workspace: Workspace) -> Iterator[Problem]:
    """APF703: report shares whose field name belongs to another API version than the manifest.

    For example, `assuredConcurrencyShares` is such a field name in a manifest of version v1.
    """
    release = workspace.release
    effect = f"Kubernetes {release.name} silently drops the field, and the level gets 30 shares."
    if release.strict_decoding:
        effect = "For clients without strict validation, the API server drops the field and the level gets 30 shares."
    for document, violation in _unknown_fields(workspace, renamed=True):
        name = shares_field(document.version)
        problem = _reject_field(
            document,
            violation,
            f"field {quote(violation.path[-1])} is named {quote(name)} in {document.version}",
            notes=(effect,),
            help=f"rename it to {quote(name)}",
            # The value 0 means 30 shares under the old name, but 0 shares under the new name. Only the author knows
            # which number is intended, so the fix for the value 0 is unsafe.
            fix=rename_field(document, violation.path, name, safe=violation.got != 0),
        )
        yield _unless_lenient(problem, release)


def _unknown_fields(workspace: Workspace, *, renamed: bool) -> Iterator[tuple[Document, Violation]]:
    """Yield (document, violation) for each unknown field of the manifests.

    If `renamed` is true, yield only `assuredConcurrencyShares` and `nominalConcurrencyShares` in an API
    version that uses the other of these two names. If `renamed` is false, yield all other unknown
    fields.
    """
    for manifest in workspace.manifests:
        for violation in manifest.violations:
            if violation.what == "unknown" and (violation.path in _RENAMED) == renamed:
                yield manifest.document, violation


def _reject_field(document: Document, violation: Violation, message: str, **details: Any) -> Problem:
    # In its error message, the server writes a dot before an unknown field, even if the name contains special characters.
    parent, name = field_path(violation.path[:-1]), violation.path[-1]
    field = f"{parent}.{name}" if parent else str(name)
    return bad_request(Place(document, violation.path, key=True), message, field=field, **details)


def _explain(document: Document, violation: Violation, release: Release) -> tuple[tuple[str, ...], str | None]:
    """Return (notes, help) for an unknown field."""
    path, name = violation.path, str(violation.path[-1])
    if release.minor < _FIELD_SINCE.get(name, 0):
        return (f"The field was added in Kubernetes 1.{_FIELD_SINCE[name]}.",), None
    if is_subject_field(document, path):
        if name in RBAC_SUBJECT_FIELDS:
            return ("Only subjects of RBAC have this field.",), "remove it"
        if help_text := _suggest_nested_subject(document, path):
            return (), help_text
    if name in RBAC_ROLE_FIELDS:
        return (f"Only roles and bindings of RBAC have the field {quote(name)}.",), "remove it"
    if name.startswith("x-"):
        return (
            "Kubernetes has no extension fields.",
        ), "define the YAML anchor at the first field of the object that uses the value"
    if "\u00a0" in name:
        return ("YAML reads no-break spaces (U+00A0) as part of the key.",), "indent the line with spaces"
    if synonym := find_synonym(name, document.at(*path), document.version):
        if synonym in violation.known:
            return (), f"did you mean {quote(synonym)}?"
        if owners := sorted(find_owners(synonym, document, release)):
            return (), f"did you mean {quote(synonym)} in {join_words(owners)}?"
    if question := did_you_mean(name, violation.known):
        return (), question
    if paths := find_field_paths(name, document.kind, document.version, release)[:_MAX_NAMED_PLACES]:
        owners = [owner.rpartition(".")[0] or f"the {document.kind}" for owner in paths]
        return (), f"does it belong in {join_words(owners)}?"
    if owner := find_owner_of_fields(document, violation, release):
        parent, _, owner_name = owner.rpartition(".")
        if parent == field_path(path[:-1]) and not document.has(*path[:-1], owner_name):
            return (), f"did you mean {quote(owner_name)}?"
        return (), f"do its fields belong in {owner}?"
    return (f"Known fields are {join_words(violation.known, 'and')}.",), None


def _suggest_nested_subject(document: Document, path: Path) -> str | None:
    """Return help for a field `name` or `namespace` that a subject has next to `kind`, as in RBAC.

    Return None for other fields.
    """
    subject = document.at(*path[:-1])
    kind = find_intended_kind(subject)
    if path[-1] not in ("name", "namespace") or kind is None or not isinstance(subject, dict):
        return None
    if path[-1] == "namespace" and "name" in subject:
        return f"move it to {quote(SUBJECT_FIELDS[kind])} with the name" if kind == "ServiceAccount" else None
    names = ("namespace", "name") if kind == "ServiceAccount" else ("name",)
    values: list[str] = []
    for name in names:
        value = subject.get(name)
        if isinstance(value, bool | int | float):
            value = scalar_text(document, (*path[:-1], name))
        values.append(f"{name}: {json.dumps(value if isinstance(value, str) and value else '...')}")
    return f"unlike in RBAC, write {SUBJECT_FIELDS[kind]}: {{{', '.join(values)}}}"


def wrong_type(workspace: Workspace) -> Iterator[Problem]:
    """APF102: report values whose type is not the type of their field."""
    for manifest in workspace.manifests:
        document = manifest.document
        violations = [violation for violation in manifest.violations if violation.what != "unknown"]
        for violation in violations:
            path = violation.path
            fix = fix_wrong_type(document, violation)
            # For a wrong label or annotation, the server's error names the field `metadata.labels` or `metadata.annotations`,
            # without the key.
            is_in_map = path[:2] in (("metadata", "labels"), ("metadata", "annotations"))
            yield bad_request(
                Place(document, path),
                describe_wrong_type(document, violation),
                field=field_path(path[:2] if is_in_map else path),
                help=fix.title if fix else suggest_type(document, violation),
                fix=fix,
            )
        reported = {violation.path for violation in violations}
        for path in document.not_finite:
            if path not in reported:
                yield bad_request(Place(document, path), describe_not_finite(document.text(path)))
