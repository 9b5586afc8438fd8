"""The list of rules and the pages of single rules, as `apflint rule` prints them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint import rule_catalogue
from apflint.output.blocks import Column, Group, Heading, Prose, Table, Text
from apflint.output.console import PROSE_WIDTH
from apflint.output.sanitize import sanitize
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.blocks import Block, Tone
    from apflint.output.console import Style
    from apflint.rule_catalogue import Rule

FAMILIES: dict[str, str] = {
    "APF0": "Input",
    "APF1": "Structure and metadata",
    "APF2": "FlowSchema, as the API server validates it",
    "APF3": "PriorityLevelConfiguration, as the API server validates it",
    "APF4": "References and ownership",
    "APF5": "Matching",
    "APF6": "Capacity",
    "APF7": "API versions",
    "APF8": "Running servers",
    "APF9": "apflint itself",
}
"""Titles of the rule families. The keys are the prefixes of the rule IDs."""
_TONES: dict[str, Tone] = {"error": "error", "warning": "warning", "info": "info", "off": "dim"}
_FIXES = {
    "safe": "Fix: `apflint fix` fixes the findings of this rule if possible.",
    "unsafe": "Fix: `apflint fix --unsafe-fixes` fixes the findings of this rule if possible.",
}


def rule_json(rule: Rule) -> dict[str, object]:
    """Return the JSON object of a rule: the fields in the front matter of the rule's page, and its URL."""
    fields = ("id", "name", "severity", "stage", "since", "summary", "fix", "references", "url")
    return {field: getattr(rule, field) for field in fields}


def report_rules(rules: tuple[Rule, ...], style: Style) -> Iterator[Block]:
    """Yield a table of rules for each family."""
    longest = max((len(rule.name) for rule in rules), default=0)
    columns = [Column(title, "text") for title in ("ID", "Severity", "Fix", "Name", "Summary")]
    for prefix in sorted({rule.id[:4] for rule in rules}):
        rows = [
            (
                Text(rule.id, url=rule.url if style.hyperlinks else ""),
                Text(f"{rule.severity:7}", _TONES[rule.severity]),
                Text("fix" if rule.fix else "   ", "good"),
                Text(f"{rule.name:{longest}}", "bold"),
                rule.summary,
            )
            for rule in rules
            if rule.id.startswith(prefix)
        ]
        yield Group([Heading(FAMILIES.get(prefix, prefix)), Table(columns, rows, has_header=False)])
    count = pluralize(len(rules), "rule")
    hint = (
        f"{count}. `apflint rule APF305`, or a rule's name, shows its page. `apflint fix` fixes findings of rules marked"
        " `fix` if possible."
    )
    yield Prose([hint])


def render_rule(rule: Rule, style: Style) -> str:
    """Render the page of a rule, as plain Markdown for a pipe or formatted for a terminal."""
    severity = (
        "Off by default: `--extend-select` turns it on." if rule.severity == "off" else f"Severity: {rule.severity}."
    )
    fix = f"\n\n{_FIXES[rule.fix]}" if rule.fix else ""
    body = rule_catalogue.explain_markers(rule.body)
    prose = f"# {rule.id} {rule.name}\n\n{rule.summary}\n\n{severity} Since apflint {rule.since}.{fix}\n\n{body}"
    if style.width is None:
        references = "".join(f"- {reference}\n" for reference in rule.references)
        return f"{prose}\n## References\n\n{references}\n{rule.url}\n"
    from apflint.output.terminal_markdown import render_markdown  # imported here, because only terminals need rich

    page = render_markdown(prose, style, min(style.width, PROSE_WIDTH))
    # rich would break URLs into lines, so that users cannot copy them.
    links = "".join(f"  {style.link(sanitize(text), text)}\n" for text in (*rule.references, rule.url))
    text = f"{page}\n{style.paint('References', 'bold')}\n\n{links}"
    return re.sub("\n{3,}", "\n\n", text).lstrip("\n")  # rich adds empty lines around code
