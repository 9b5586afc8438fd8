"""The figures in docs/reference/language-server.md agree with the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import budgets
from apflint.lsp import check_scheduling

if TYPE_CHECKING:
    from pathlib import Path


def test_figures(root: Path) -> None:
    words = " ".join((root / "docs/reference/language-server.md").read_text(encoding="utf-8").split())
    for figure in (
        f"starts {check_scheduling.CHECK_DELAY_SECONDS} seconds after the last key",
        f"documents of more than {budgets.MAX_COMPLETION_CHARACTERS:,} characters",
        f"files of more than {budgets.MAX_COMPLETION_CHARACTERS:,} characters",
        f"the first {budgets.MAX_FINDINGS_WITH_ACTIONS} have",
        f"the first {budgets.MAX_DIAGNOSTICS_PER_FILE:,} are shown",
        f"more than {budgets.MAX_WORKSPACE_FILES:,} manifests",
    ):
        assert figure in words
