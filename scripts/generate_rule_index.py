"""Generate the tables in docs/reference/rules.md from the pages in rules/.

python scripts/generate_rule_index.py            update the page
python scripts/generate_rule_index.py --check    fail if the page is not up to date
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from generated_files import update_or_check

from apflint import rule_catalogue
from apflint.output.rule_page import FAMILIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "rules.md"
BEGIN, END = "<!-- begin of the generated tables -->\n", "<!-- end of the generated tables -->\n"


def render_tables() -> str:
    """Return a heading and a table of rules for each family."""
    parts = []
    for prefix, rules in groupby(rule_catalogue.read_rules(), key=lambda rule: rule.id[:4]):
        rows = [
            f"| [{rule.id}](../../rules/{rule.id}.md) | `{rule.name}` | {rule.severity} | {rule.fix or ''} | {rule.summary} |\n"
            for rule in rules
        ]
        head = "| id | name | severity | fix | summary |\n|---|---|---|---|---|\n"
        parts.append(f"\n## {prefix}: {FAMILIES[prefix]}\n\n{head}{''.join(rows)}")
    return "".join(parts) + "\n"


def update(page: str) -> str:
    """Return the page with new tables."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + render_tables() + END + rest.split(END)[1]


def main() -> int:
    """Update or check the page. Returns the exit code."""
    return update_or_check({PAGE: update(PAGE.read_text("utf-8"))})


if __name__ == "__main__":
    sys.exit(main())
