"""The parts of a finding beside its message: notes, help and fix, as text that every format for people shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apflint.finding import Finding
    from apflint.fix import Fix

_REASONS = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "BadRequest": "decoding error (BadRequest)",
}
"""Reasons as users see them. Source: apimachinery, pkg/util/validation/field/errors.go, `ErrorType.String`."""


def list_notes(finding: Finding) -> list[str]:
    """Return the notes to print: the API server's rejection, the notes of the check, and findings that are not reported."""
    rejection, more = describe_rejection(finding), describe_unreported(finding)
    return [note for note in (rejection, *finding.notes, more) if note is not None]


def list_related(finding: Finding) -> list[str]:
    """Return the related places, each with what it has to do with the finding."""
    return [f"{other.file}:{other.span.line}:{other.span.column}: {other.message}" for other in finding.related]


def describe_rejection(finding: Finding) -> str | None:
    """Return the field and the reason for which the API server rejects the object, or None if it accepts it."""
    if finding.apiserver is None or not finding.is_rejected:
        return None
    field, reason = finding.apiserver.field, finding.apiserver.reason
    return f"kube-apiserver rejects this object: {f'{field}: ' if field else ''}{_REASONS.get(reason, reason)}"


def describe_unreported(finding: Finding) -> str | None:
    """Return how many findings of the rule are not reported one by one, or None if all are."""
    if not finding.more:
        return None
    return f"At least {finding.more:,} more findings of {finding.rule} in this file are not reported."


def describe_fix(fix: Fix) -> str:
    """Return what a fix does, and whether it is safe."""
    return f"{fix.title} ({'safe' if fix.safe else 'unsafe: --unsafe-fixes'})"


def describe_in_one_line(finding: Finding) -> str:
    """Return the message with the help, for formats that have one text for each finding."""
    text = f"{finding.message} (help: {finding.help})" if finding.help else finding.message
    more = describe_unreported(finding)
    return f"{text}. {more}" if more else text
