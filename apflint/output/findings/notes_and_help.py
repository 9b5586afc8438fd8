"""Text of a finding other than its message: notes, help, fix and example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.wording import join_some

if TYPE_CHECKING:
    from apflint.finding import Finding

_MAX_CLUSTERS = 10
"""Maximum number of clusters that a sentence names. JSON and SARIF contain all names."""
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
"""Text for each reason of a rejection, as the server's error messages write it. Source: apimachinery,
pkg/util/validation/field/errors.go, `ErrorType.String`."""


def list_notes(finding: Finding) -> list[str]:
    """Return the notes to print.

    The notes are about: the rejection by the API server, the explanations of the check, the clusters that have the finding, and
    the number of unreported findings of the rule.
    """
    notes = list(finding.notes)
    if finding.apiserver is not None and finding.is_rejected:
        field, reason = finding.apiserver.field, finding.apiserver.reason
        where = f"{field}: " if field else ""
        notes.insert(0, f"kube-apiserver rejects this object: {where}{_REASONS.get(reason, reason)}")
    if finding.clusters:
        notes.append(f"{_describe_clusters(finding)}.")
    return [*notes, more] if (more := describe_unreported(finding)) else notes


def list_remarks(finding: Finding) -> list[tuple[str, str]]:
    """Return the notes, related places, help, fix and example of a finding, each with its label.

    Related places have the label `note`.
    """
    related = [f"{other.file}:{other.span.line}:{other.span.column}: {other.message}" for other in finding.related]
    remarks = [("note", note) for note in (*list_notes(finding), *related)]
    fix = finding.fix
    if finding.help:
        remarks.append(("help", finding.help))
    if fix is not None:
        remarks.append(("fix", f"{fix.title} ({'safe' if fix.safe else 'unsafe: --unsafe-fixes'})"))
    return [*remarks, ("example", finding.example)] if finding.example else remarks


def _describe_clusters(finding: Finding) -> str:
    """Return the names of the clusters that have a finding: `In cluster prod`, or `In 3 clusters: dev, prod and staging`."""
    clusters = finding.clusters
    names = join_some(clusters, _MAX_CLUSTERS)
    return f"In cluster {names}" if len(clusters) == 1 else f"In {len(clusters)} clusters: {names}"


def describe_unreported(finding: Finding) -> str | None:
    """Return a sentence with the number of unreported findings of the rule, or None if all findings are reported."""
    if not finding.more:
        return None
    return f"At least {finding.more:,} more findings of {finding.rule} in this file are not reported."


def describe_in_one_line(finding: Finding) -> str:
    """Return the message and the help, for formats with a single string for each finding.

    If a line of the help ends in a colon, the lines after this line (such as YAML to copy) are omitted.
    """
    help_ = (finding.help or "").partition(":\n")[0]
    text = f"{finding.message} (help: {help_})" if help_ else finding.message
    more = [_describe_clusters(finding)] if finding.clusters else []
    more += [unreported.rstrip(".")] if (unreported := describe_unreported(finding)) else []
    return ". ".join((text, *more)) + ("." if more else "")
