"""The snippets and figures of docs/reference/language-server.md."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

from support.pages import read_blocks

from apflint import budgets
from apflint.lsp import check_scheduling

if TYPE_CHECKING:
    from pathlib import Path


def test_snippets_start_the_server() -> None:
    blocks = [(block.language, block.text) for block in read_blocks("reference/language-server")]
    assert [language for language, _ in blocks] == ["json", "lua", "lisp", "lisp", "toml"]
    settings = json.loads(blocks[0][1])
    assert (settings["glspc.server.command"], settings["glspc.server.commandArguments"]) == ("apflint", ["lsp"])
    assert "cmd = { 'apflint', 'lsp' }" in blocks[1][1]
    for _, text in blocks[1:4]:
        assert all(text.count(opening) == text.count(closing) for opening, closing in ("()", "{}"))
    assert all('("apflint" "lsp")' in text for _, text in blocks[2:4])
    helix = tomllib.loads(blocks[4][1])
    assert helix["language-server"]["apflint"] == {"command": "apflint", "args": ["lsp"]}
    assert "apflint" in helix["language"][0]["language-servers"]


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
