"""Bounds: each bound is used and documented, and states its reason and what apflint reports if an input exceeds it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from apflint import budgets
from apflint.budgets import Bound

if TYPE_CHECKING:
    from pathlib import Path

BOUNDS = {name: bound for name, bound in vars(budgets).items() if isinstance(bound, Bound)}


def test_each_bound_is_used_outside_its_module(root: Path) -> None:
    used = {
        node.id
        for path in (root / "apflint").rglob("*.py")
        if path.name != "budgets.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert BOUNDS.keys() - used == set()


def test_each_bound_states_what_is_reported() -> None:
    assert len(BOUNDS) > 40
    for name, bound in BOUNDS.items():
        assert name.startswith("MAX_")
        assert bound > 0
        assert bound.reported


def test_each_bound_has_a_reason_in_the_module(root: Path) -> None:
    text = (root / "apflint" / "budgets.py").read_text("utf-8")
    assert set(re.findall(r'(?m)^(MAX_\w+) = .*(?:\n[ )].*)*\n"""[^"]{35,}[^". ]\."""', text)) == BOUNDS.keys()


def test_page_states_what_each_bound_limits(root: Path) -> None:
    page = (root / "docs" / "reference" / "bounds.md").read_text("utf-8")
    assert set(re.findall(r"(?m)^\| `(\w+)` \| [\d,]+ \| [^|]{14,}[^|. ] \| [^|]{7,} \|", page)) == BOUNDS.keys()


def test_page_is_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/generate_bounds.py", "--check"], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
