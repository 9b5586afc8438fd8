"""Hover: explains the field, priority level or rule at the cursor, and the rules with findings there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from apflint import catalogue
from apflint.errors import UserError
from apflint.location import field_path
from apflint.lsp.convert import escape_markdown, markup, range_at
from apflint.lsp.cursor import field_at, suppression_at
from apflint.lsp.diagnostics import findings_between
from apflint.lsp.schema_fields import effective_version, find_field
from apflint.lsp.server import Server, server
from apflint.output.markdown import format_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.catalogue import Rule
    from apflint.location import Path
    from apflint.lsp.cluster_state import ClusterState
    from apflint.lsp.cursor import EnclosingObject
    from apflint.lsp.schema_fields import Field


class Explanation(NamedTuple):
    """An explanation of `text[start:end]`."""

    markdown: str
    start: int
    end: int


@server.feature(types.TEXT_DOCUMENT_HOVER)
def show_hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """Explain what is at the cursor."""
    at = ls.document_at(params)
    if at is None or not at[0].may_hold_apf:
        return None
    document, offset = at
    current = ls.session.current_result(document.uri)
    findings = findings_between(current.findings, current.source, offset, offset) if current is not None else ()
    explanation = explain(
        document.text,
        offset,
        ls.session.cluster_state(document.uri),
        json=document.is_json,
        rules=[finding.rule for finding in findings],
    )
    if explanation is None:
        return None
    range_ = None
    if explanation.start < explanation.end:
        range_ = range_at(document.source, explanation.start, explanation.end, ls.session.encoding)
    client = ls.client_capabilities.text_document
    formats = client.hover.content_format if client is not None and client.hover is not None else None
    return types.Hover(markup(explanation.markdown, formats), range_)


def explain(
    text: str, offset: int, cluster: ClusterState, *, json: bool = False, rules: Iterable[str] = ()
) -> Explanation | None:
    """Return an explanation of what is at an offset, followed by summaries of `rules`, or None if there is nothing."""
    offset = min(max(offset, 0), len(text))
    explanation = _explain_comment(text, offset) if not json else None
    if explanation is None:
        explanation = _explain_field_or_level(text, offset, cluster, json=json)
    summaries = "\n\n".join(_summarize_finding(catalogue.read_rule(rule)) for rule in dict.fromkeys(rules))
    if explanation is None:
        return Explanation(summaries, offset, offset) if summaries else None
    if summaries:
        explanation = explanation._replace(markdown=f"{explanation.markdown}\n\n---\n\n{summaries}")
    return explanation


def _explain_comment(text: str, offset: int) -> Explanation | None:
    suppression = suppression_at(text, offset)
    if suppression is None or suppression.rules is None:
        return None
    try:
        rule = catalogue.find_rule(text[suppression.start : suppression.end])
    except UserError:
        return None
    return Explanation(_describe_rule(rule), suppression.start, suppression.end)


def _explain_field_or_level(text: str, offset: int, cluster: ClusterState, *, json: bool) -> Explanation | None:
    at = field_at(text, offset, json=json)
    if at is None or not at.owner.kind:
        return None
    if at.level is not None:
        return Explanation(cluster.describe_level(at.level), at.start, at.end)
    path = at.path
    while path and isinstance(path[-1], int):
        path = path[:-1]  # items of a list are explained by the list
    field = find_field(at.owner.kind, at.owner.version, cluster.release, path)
    if field is None or not field.description:  # a label or annotation
        return None
    return Explanation(_describe_field(field, path, at.owner, cluster), at.start, at.end)


def _describe_field(field: Field, path: Path, owner: EnclosingObject, cluster: ClusterState) -> str:
    facts = [field.type] if field.type else []
    if field.required:
        facts.append("required")
    if field.default is not None:
        facts.append(f"default {format_code(json.dumps(field.default))}")
    if field.values and not field.item:
        facts.append("such as " + ", ".join(format_code(value) for value in field.values))
    version = effective_version(owner.version, cluster.release)
    where = f"{format_code(field_path(path))} of {owner.kind} {version}, Kubernetes {cluster.release.name}"
    head = f"**{escape_markdown(field.name)}**: {', '.join(facts)}"
    return "\n\n".join(part for part in (head, escape_markdown(field.description), where) if part)


def _describe_rule(rule: Rule) -> str:
    severity = "off by default" if rule.severity == "off" else rule.severity
    return f"**[{rule.id}]({rule.url})** {rule.name} ({severity})\n\n{escape_markdown(rule.summary)}"


def _summarize_finding(rule: Rule) -> str:
    return f"[{rule.id}]({rule.url}) {rule.name}: {escape_markdown(rule.summary)}"
