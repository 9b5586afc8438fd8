"""Generate the table in docs/bounds.md from apflint/budgets.py.

python scripts/generate_bounds.py            update the page
python scripts/generate_bounds.py --check    fail if the page is not up to date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from apflint import budgets

PAGE = Path(__file__).resolve().parent.parent / "docs" / "bounds.md"
_TABLE = re.compile(r"(?m)^\| bound \|.*\n(?:\|.*\n)*")


def render_table() -> str:
    """Return the table of all bounds, in the order of the module."""
    rows = ["| bound | maximum | of what, and why | beyond it |", "|---|---|---|---|"]
    for name, bound in vars(budgets).items():
        if isinstance(bound, budgets.Bound):
            rows.append(f"| `{name}` | {bound:,} | {bound.reason} | {bound.reported} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Update or check the page. Returns the exit code."""
    page = PAGE.read_text("utf-8")
    updated = _TABLE.sub(lambda _: render_table(), page, count=1)
    if "--check" in sys.argv[1:]:
        if page != updated:
            print(f"{PAGE} is not up to date: run python scripts/generate_bounds.py", file=sys.stderr)
        return int(page != updated)
    PAGE.write_text(updated, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
