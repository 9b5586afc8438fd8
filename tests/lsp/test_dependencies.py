"""Imports of the language server."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_is_imported_from_the_command_line(root: Path) -> None:
    imported: set[str] = set()
    for path in (root / "apflint/lsp").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    assert "apflint.lsp.server.server" in imported
    assert [name for name in imported if f"{name}.".startswith("apflint.cli.")] == []
