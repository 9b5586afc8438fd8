"""The command `apflint rule`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from apflint import catalogue
from apflint.cli import options
from apflint.cli.app import app, examples
from apflint.cli.completers import complete_rule
from apflint.cli.terminal import style
from apflint.output.json_text import to_json
from apflint.output.rule_page import render_rule, render_rules, rule_json


@app.command(
    rich_help_panel="Lint",
    epilog=examples(
        ("list all rules", "apflint rule"),
        ("explain a rule", "apflint rule APF305"),
        ("the same, by name, for a program", "apflint rule hand-larger-than-deck --format json"),
    ),
)
def rule(
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="[RULE]", autocompletion=complete_rule, help="Id or name of a rule.", show_default="list all rules"
        ),
    ] = None,
    output_format: options.Format = "text",
    color: options.Color = "auto",
) -> None:
    """Explain a rule: what it finds, why that matters, and how to fix it."""
    how, is_json = style(color), output_format == "json"
    if rule is None:
        rules = catalogue.read_rules()
        text = to_json({"schema": 1, "rules": list(map(rule_json, rules))}, 2) if is_json else render_rules(rules, how)
    else:
        page = catalogue.find_rule(rule)
        body = {"body": catalogue.explain_markers(page.body)}
        text = to_json({"schema": 1, **rule_json(page), **body}, 2) if is_json else render_rule(page, how)
    sys.stdout.write(text)
