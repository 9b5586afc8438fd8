"""SARIF 2.1.0 (OASIS), with what GitHub's code scanning asks for and shows.

Suppressed findings are not in a report at all. Text of manifests appears with its invisible characters as escapes, as on
a terminal: not every reader of JSON takes U+0000 or a lone surrogate.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from apflint import __version__, catalogue
from apflint.output.findings.fingerprint import line_hashes
from apflint.output.findings.paths import from_root
from apflint.output.json_text import to_json
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.catalogue import Rule
    from apflint.finding import Finding, Report, Severity
    from apflint.location import Span
    from apflint.output.console import Style

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://github.com/apflint/apflint"
ROOT = "%SRCROOT%"
"""The name that code scanning gives the root of the checkout."""
LONGEST = 1024
"""Characters of a description at most; GitHub, "SARIF support for code scanning", table of reportingDescriptor."""

MOST = 25_000
"""Results in a run at most: code scanning refuses a log with more; GitHub, "SARIF results exceed one or more limits"."""

LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
# How sure a finding is a problem of this configuration. The rules with errors repeat what the server does, or are proved;
# a warning rests on what the rest of the cluster is like; advice weighs what is usual.
_PRECISIONS = {"error": "very-high", "warning": "high", "info": "medium", "off": "medium"}
_PROBLEMS = {"error": "error", "warning": "warning", "info": "recommendation", "off": "recommendation"}


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """One SARIF log in ASCII with one run; `results` is there, and empty, when nothing was found. Ends in a newline."""
    findings = _most(report)
    ids = sorted({finding.rule for finding in findings})
    hashes = _hashes(report)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "apflint",
                "informationUri": HOME,
                "semanticVersion": __version__,
                "rules": [_rule(catalogue.rule(rule)) for rule in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The root of the checkout, or the directory that apflint ran in."}}
        },
        "results": [_result(finding, ids.index(finding.rule), hashes) for finding in findings],
    }
    if left := len(report.findings) - len(findings):
        told = f"{left:,} more findings are not in this log: code scanning takes {MOST:,}. The most severe are here."
        note = {"level": "warning", "message": {"text": told}}
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": [note]}]
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, 1)


def _most(report: Report) -> tuple[Finding, ...]:
    """The findings that a log takes, in the order of the report: all, or the most severe."""
    if len(report.findings) <= MOST:
        return report.findings
    from apflint.output.findings.github import ranked  # nearly never needed

    kept = {id(finding) for finding in ranked(report)[:MOST]}
    return tuple(finding for finding in report.findings if id(finding) in kept)


def _rule(rule: Rule) -> dict[str, Any]:
    """A rule, as its page tells it."""
    why = rule.body.partition("## Why\n")[2].partition("\n## ")[0].strip()
    first = " ".join(why.partition("\n\n")[0].split())
    references = "".join(f"- <{reference}>\n" for reference in rule.references)
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": _plain(rule.summary)},
        "fullDescription": {"text": _plain(first or rule.summary)},
        "help": {
            "text": f"{rule.summary}\n\n{why}\n\n{rule.url}\n",
            "markdown": f"{rule.summary}\n\n{catalogue.readable(rule.body)}\n## References\n\n{references}",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"enabled": rule.severity != "off", "level": _level(rule)},
        "properties": {
            "tags": ["kubernetes", "api-priority-and-fairness", rule.stage],
            "precision": _PRECISIONS[rule.severity],
            "problem.severity": _PROBLEMS[rule.severity],
        },
    }


def _level(rule: Rule) -> str:
    return "note" if rule.severity == "off" else LEVELS[rule.severity]


def _plain(markdown: str) -> str:
    """A sentence without code spans and link targets, cut to what GitHub takes."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", markdown).replace("`", "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _result(finding: Finding, index: int, hashes: dict[tuple[str, int], str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": text(finding.message)},
        "locations": [{"physicalLocation": _place(finding.file, finding.span), **_logical(finding)}],
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _place(other.file, other.span), "message": {"text": text(other.message)}}
            for number, other in enumerate(finding.related, 1)
        ]
    # Of a file that could not be read there is no line to hash.
    if fingerprint := hashes.get((finding.file, finding.span.line)):
        result["partialFingerprints"] = {"primaryLocationLineHash": fingerprint}
    return result


def text(message: str) -> str:
    """A message that says what it says: `[text](target)` from a manifest must not become a link (SARIF 3.11.6).

    The backslash stands where it cannot be taken for one that the message had before the bracket.
    """
    return sanitize(message).replace("](", "]\\(")


def _logical(finding: Finding) -> dict[str, Any]:
    """Which object it is, and which field of it."""
    if finding.object is None:
        return {}
    name = sanitize(f"{finding.object.kind}/{finding.object.name}")
    field = sanitize(finding.field)
    return {"logicalLocations": [{"kind": "object", "fullyQualifiedName": f"{name}:{field}" if field else name}]}


def _place(file: str, span: Span) -> dict[str, Any]:
    return {
        "artifactLocation": location(file),
        "region": {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        },
    }


def location(file: str) -> dict[str, str]:
    """Where a file is: relative to where we run, or as a `file:` address where it lies elsewhere."""
    path = from_root(file)
    if os.path.isabs(path):
        return {"uri": f"file://{_quoted(path)}"}
    return {"uri": _quoted(path), "uriBaseId": ROOT}


def _quoted(path: str) -> str:
    """A path as part of an address: bytes that are no UTF-8 are kept as they are on disk."""
    from urllib.parse import quote  # only this format needs it

    try:
        data = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = path.encode("utf-8", "surrogatepass")
    return quote(data)


def _hashes(report: Report) -> dict[tuple[str, int], str]:
    """The fingerprint of each line that has a finding."""
    lines: dict[str, set[int]] = {}
    for finding in report.findings:
        lines.setdefault(finding.file, set()).add(finding.span.line)
    return {
        (file, line): found
        for file, wanted in lines.items()
        if file in report.sources
        for line, found in line_hashes(report.sources[file].text, wanted).items()
    }
