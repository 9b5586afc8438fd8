"""Defines `apflint rule`, which explains a rule or lists all rules."""

from __future__ import annotations

import sys
from typing import Annotated

from apflint import rule_catalogue
from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.completers import complete_rule
from apflint.cli.options import argument
from apflint.cli.terminal import style
from apflint.output.json_text import SCHEMA, to_json
from apflint.output.rule_page import render_rule, report_rules, rule_json
from apflint.output.text import render


@command(
    panel="Lint",
    epilog=examples(
        ("list all rules", "apflint rule"),
        ("list the rules about matching", "apflint rule APF5"),
        ("explain a rule", "apflint rule APF305"),
        ("the same, by name, for a program", "apflint rule hand-larger-than-deck --format json"),
    ),
)
def rule(
    rule: Annotated[
        str | None,
        argument(
            "Id or name of a rule, or a prefix such as APF5 to list the rules.",
            metavar="[RULE]",
            autocompletion=complete_rule,
            show_default="list all rules",
        ),
    ] = None,
    output_format: options.Format = "text",
    color: options.Color = "auto",
) -> None:
    """Explain a rule: what it finds, why that matters, and how to fix it."""
    how, is_json = style(color), output_format == "json"
    rules = rule_catalogue.read_rules() if rule is None else rule_catalogue.find_family(rule)
    if rules is not None:
        text = (
            to_json({"schema": SCHEMA, "rules": list(map(rule_json, rules))}, 2)
            if is_json
            else render(report_rules(rules, how), how)
        )
    else:
        assert rule is not None
        page = rule_catalogue.find_rule(rule)
        body = {"body": rule_catalogue.explain_markers(page.body)}
        text = to_json({"schema": SCHEMA, **rule_json(page), **body}, 2) if is_json else render_rule(page, how)
    sys.stdout.write(text)
