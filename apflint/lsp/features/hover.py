"""Hover: explains the field, priority level or rule at the cursor, and the rules with findings at the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from apflint import rule_catalogue
from apflint.location import field_path
from apflint.lsp.cursor import field_at, suppression_at
from apflint.lsp.diagnostics import findings_between
from apflint.lsp.priority_levels import describe_level
from apflint.lsp.protocol_conversion import ANY_FORMAT, escape_markdown, markup, range_at
from apflint.lsp.schema_fields import effective_version, find_field
from apflint.lsp.server import EditorServer, server
from apflint.output.markdown import format_code
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.effective_configuration import Effective


class HoverText(NamedTuple):
    """An explanation of `text[start:end]`."""

    markdown: str
    start: int
    end: int


@server.feature(types.TEXT_DOCUMENT_HOVER)
def show_hover(ls: EditorServer, params: types.HoverParams) -> types.Hover | None:
    """Explain the field, priority level or rule at the cursor. Return None if there is nothing to explain."""
    document, offset = ls.document_at(params)
    if document is None or not document.may_hold_apf:
        return None
    current = ls.session.current_result(document.uri)
    findings = findings_between(current.findings, current.source, offset, offset) if current is not None else ()
    rules = [finding.rule for finding in findings]
    effective = ls.session.effective(document.uri)
    explanation = explain(document.text, offset, effective, json=document.is_json, rules=rules)
    if explanation is None:
        return None
    range_ = range_at(document.source, explanation.start, explanation.end, ls.session.encoding)
    formats = ls.capability("text_document.hover.content_format", default=ANY_FORMAT)
    return types.Hover(markup(explanation.markdown, formats), range_ if range_.start != range_.end else None)


def explain(
    text: str, offset: int, effective: Effective, *, json: bool = False, rules: Iterable[str] = ()
) -> HoverText | None:
    """Explain the field, priority level or rule at an offset, then summarize `rules`.

    Return None if there is nothing to explain and `rules` is empty.
    """
    explanation = _explain_comment(text, offset) if not json else None
    explanation = explanation or _explain_field_or_level(text, offset, effective, json=json)
    summaries = "\n\n".join(map(_summarize_rule, dict.fromkeys(rules)))
    if explanation is not None and summaries:
        return explanation._replace(markdown=f"{explanation.markdown}\n\n---\n\n{summaries}")
    return explanation or (HoverText(summaries, offset, offset) if summaries else None)


def _explain_comment(text: str, offset: int) -> HoverText | None:
    suppression = suppression_at(text, offset)
    if suppression is None or suppression.rules is None:
        return None
    try:
        rule = rule_catalogue.find_rule(text[suppression.start : suppression.end])
    except UserError:
        return None
    severity = "off by default" if rule.severity == "off" else rule.severity
    markdown = f"**[{rule.id}]({rule.url})** {rule.name} ({severity})\n\n{escape_markdown(rule.summary)}"
    return HoverText(markdown, suppression.start, suppression.end)


def _explain_field_or_level(text: str, offset: int, effective: Effective, *, json: bool) -> HoverText | None:
    at = field_at(text, offset, json=json)
    if at is None or not at.owner.kind:
        return None
    if at.level is not None:
        return HoverText(describe_level(effective, at.level), at.start, at.end)
    path = at.path
    while path and isinstance(path[-1], int):
        path = path[:-1]  # the description of a list also explains its items
    kind, version = at.owner.kind, effective_version(at.owner.version, effective.release)
    field = find_field(kind, version, effective.release, path)
    if field is None or not field.description:  # for example, the keys of labels and annotations have no description
        return None
    head = f"**{escape_markdown(field.name)}**: {field.facts}"
    if field.values and field.type != "array":
        head += f", such as {', '.join(map(format_code, field.values))}"
    place = f"{format_code(field_path(path))} of {kind} {version}, Kubernetes {effective.release.name}"
    return HoverText(f"{head}\n\n{escape_markdown(field.description)}\n\n{place}", at.start, at.end)


def _summarize_rule(rule_id: str) -> str:
    rule = rule_catalogue.read_rule(rule_id)
    return f"[{rule.id}]({rule.url}) {rule.name}: {escape_markdown(rule.summary)}"
