"""SARIF 2.1.0 (OASIS), with the properties that GitHub's code scanning requires and shows.

Suppressed findings are omitted. Invisible characters in text from manifests are escaped as on a terminal, because some
JSON parsers reject U+0000 or lone surrogates.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from apflint import __version__, rule_catalogue
from apflint.output.findings.code_host import rank, relative_to_checkout
from apflint.output.findings.edits import EditLocator
from apflint.output.findings.line_hashes import hash_lines
from apflint.output.findings.notes_and_help import describe_in_one_line
from apflint.output.json_text import to_json
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.location import Span
    from apflint.output.console import Style
    from apflint.rule_catalogue import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://github.com/apflint/apflint"
ROOT = "%SRCROOT%"
"""GitHub's name for the root of the checkout."""
_MAX_DESCRIPTION_LENGTH = 1024
"""Maximum number of characters of a description (GitHub docs, "SARIF support for code scanning", reportingDescriptor)."""
MAX_RESULTS = 25_000
"""Maximum number of results in a run. GitHub rejects larger runs ("SARIF results exceed one or more limits")."""

LEVELS = {"error": "error", "warning": "warning", "info": "note", "off": "note"}
# `precision` in SARIF states how certainly a finding is a problem. Errors follow from the server's behavior or a proof.
# Whether a warning is a problem depends on objects that apflint does not know. Findings of severity info are advice.
_PRECISIONS = {"error": "very-high", "warning": "high", "info": "medium", "off": "medium"}
_PROBLEMS = {"error": "error", "warning": "warning", "info": "recommendation", "off": "recommendation"}


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for every style
    """Render a SARIF log with one run, in ASCII. Without findings, `results` is empty."""
    findings = [report.findings[index] for index in sorted(rank(report.findings)[:MAX_RESULTS])]
    rules = sorted({finding.rule for finding in findings})
    hashes = _hash_lines(report)
    locator = EditLocator(report)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "apflint",
                "informationUri": HOME,
                "semanticVersion": __version__.replace(".dev", "-dev."),  # semantic versions need the hyphen
                "rules": [_rule(rule_catalogue.read_rule(rule)) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The root of the checkout, or the directory that apflint ran in."}}
        },
        "results": [_result(finding, rules.index(finding.rule), hashes, locator) for finding in findings],
    }
    if left := len(report.findings) - len(findings):
        text = f"{left:,} more findings are not in this log, because code scanning accepts at most {MAX_RESULTS:,}."
        notification = {"level": "warning", "message": {"text": text}}
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": [notification]}]
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, 1)


def _rule(rule: Rule) -> dict[str, Any]:
    """Return the description of a rule, from its page."""
    why = rule.body.partition("## Why\n")[2].partition("\n## ")[0].strip()
    first_paragraph = " ".join(why.partition("\n\n")[0].split())
    references = "".join(f"- <{reference}>\n" for reference in rule.references)
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": _shorten(rule.summary)},
        "fullDescription": {"text": _shorten(first_paragraph or rule.summary)},
        "help": {
            "text": f"{rule.summary}\n\n{why}\n\n{rule.url}\n",
            "markdown": f"{rule.summary}\n\n{rule_catalogue.explain_markers(rule.body)}\n## References\n\n{references}",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"enabled": rule.severity != "off", "level": LEVELS[rule.severity]},
        "properties": {
            "tags": ["kubernetes", "api-priority-and-fairness", rule.stage],
            "precision": _PRECISIONS[rule.severity],
            "problem.severity": _PROBLEMS[rule.severity],
        },
    }


def _shorten(markdown: str) -> str:
    """Remove backquotes and link targets, and cut the text to the length that GitHub accepts."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", markdown).replace("`", "")
    return text if len(text) <= _MAX_DESCRIPTION_LENGTH else f"{text[: _MAX_DESCRIPTION_LENGTH - 3]}..."


def _result(finding: Finding, index: int, hashes: dict[tuple[str, int], str], locator: EditLocator) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": _escape_links(describe_in_one_line(finding))},
        "locations": [{"physicalLocation": _location(finding.file, finding.span), **_object(finding)}],
    }
    related = [
        {
            "id": number,
            "physicalLocation": _location(other.file, other.span),
            "message": {"text": _escape_links(other.message)},
        }
        for number, other in enumerate(finding.related, 1)
    ]
    if related:
        result["relatedLocations"] = related
    if finding.clusters:
        result["properties"] = {"clusters": list(finding.clusters)}
    # The hash is computed from the text of the line, so findings in unreadable files have no hash.
    if fingerprint := hashes.get((finding.file, finding.span.line)):
        result["partialFingerprints"] = {"primaryLocationLineHash": fingerprint}
    if fix := _fix(finding, locator):
        result["fixes"] = [fix]
    return result


def _fix(finding: Finding, locator: EditLocator) -> dict[str, Any] | None:
    """Return the fix of a finding as a SARIF object, or None if it has no fix whose edits can be computed."""
    edits = locator.locate(finding) if finding.fix else None
    if not finding.fix or not edits:
        return None
    replacements = [{"deletedRegion": _region(span), "insertedContent": {"text": text}} for span, text in edits]
    safety = "safe" if finding.fix.safe else "unsafe"
    return {
        "description": {"text": f"{_escape_links(finding.fix.title)} ({safety})"},
        "artifactChanges": [{"artifactLocation": locate_artifact(finding.file), "replacements": replacements}],
    }


def _escape_links(message: str) -> str:
    """Sanitize a message, and escape `[text](target)`, which SARIF viewers would show as a link (SARIF 3.11.6).

    The backslash is inserted after `]`, because the message may already contain a backslash before a bracket.
    """
    return sanitize(message).replace("](", "]\\(")


def _object(finding: Finding) -> dict[str, Any]:
    """Return the object and field of a finding as a `logicalLocation` of SARIF."""
    if finding.object is None:
        return {}
    name = sanitize(f"{finding.object.kind}/{finding.object.name}")
    field = sanitize(finding.field)
    return {"logicalLocations": [{"kind": "object", "fullyQualifiedName": f"{name}:{field}" if field else name}]}


def _location(file: str, span: Span) -> dict[str, Any]:
    return {"artifactLocation": locate_artifact(file), "region": _region(span)}


def _region(span: Span) -> dict[str, int]:
    return dict(zip(("startLine", "startColumn", "endLine", "endColumn"), span, strict=True))


def locate_artifact(file: str) -> dict[str, str]:
    """Return the location of a file: a path relative to the root of the checkout, or a `file:` URL outside the root."""
    path = relative_to_checkout(file)
    if os.path.isabs(path):
        return {"uri": f"file://{_quote(path)}"}
    return {"uri": _quote(path), "uriBaseId": ROOT}


def _quote(path: str) -> str:
    """Return a path as part of a URL. Bytes that are not UTF-8 are kept, and percent-encoded."""
    from urllib.parse import quote  # imported for this format only

    try:
        return quote(path, errors="surrogateescape")
    except UnicodeEncodeError:
        return quote(path, errors="surrogatepass")


def _hash_lines(report: Report) -> dict[tuple[str, int], str]:
    """Return a mapping from (file, line number) to the fingerprint of the line, for each line that has a finding."""
    lines: dict[str, set[int]] = {}
    for finding in report.findings:
        lines.setdefault(finding.file, set()).add(finding.span.line)
    return {
        (file, line): fingerprint
        for file, numbers in lines.items()
        if file in report.sources
        for line, fingerprint in hash_lines(report.sources[file].text, numbers).items()
    }
