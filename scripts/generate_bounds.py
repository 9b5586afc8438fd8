"""Generate the table in docs/reference/bounds.md from apflint/budgets.py.

python scripts/generate_bounds.py            update the page
python scripts/generate_bounds.py --check    fail if the page is not up to date
"""

from __future__ import annotations

import ast
import re
import sys
from itertools import pairwise
from pathlib import Path

from generated_files import update_or_check

from apflint import budgets

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "bounds.md"
_TABLE = re.compile(r"(?m)^\| bound \|.*\n(?:\|.*\n)*")


def read_bounds() -> dict[str, tuple[budgets.Bound, str]]:
    """Return the name and the docstring of each bound, in the order of the module."""
    body = ast.parse(Path(budgets.__file__).read_text("utf-8")).body
    found = {}
    for statement, docstring in pairwise(body):
        match statement, docstring:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = getattr(budgets, name), text.removesuffix(".")
    return found


def render_table() -> str:
    """Return the table of all bounds, and what each bound limits.

    The reasons in the docstrings are left out, because they are for readers of the module.
    """
    rows = ["| bound | maximum | of what | beyond it |", "|---|---|---|---|"]
    for name, (bound, docstring) in read_bounds().items():
        subject = docstring.partition(". ")[0].removeprefix("Maximum number of ").removeprefix("Maximum ")
        rows.append(f"| `{name}` | {bound:,} | {subject} | {bound.reported} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Update or check the page. Returns the exit code."""
    return update_or_check({PAGE: _TABLE.sub(lambda _: render_table(), PAGE.read_text("utf-8"), count=1)})


if __name__ == "__main__":
    sys.exit(main())
