"""`lsp`, which editors start."""

from __future__ import annotations

from apflint.cli.app import app, said


@app.command()
def lsp() -> int:
    """Serve an editor: findings, hover, completion and fixes while you type (Language Server Protocol on stdio)."""
    from apflint.lsp.stdio import run

    return said(run)
