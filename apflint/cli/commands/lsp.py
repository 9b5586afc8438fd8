"""Defines `apflint lsp`, which runs the language server for editors."""

from __future__ import annotations

from apflint.cli.command_definitions import command, examples


@command(panel="Editors and shells", epilog=examples(("what an editor runs", "apflint lsp")))
def lsp() -> int:
    """Run the language server for editors, on standard input and output.

    It reports findings and fixes as you type, and explains fields and rules.
    The findings in an open directory are those of `apflint check`.

    Configure your editor to run `apflint lsp` for YAML and JSON files. See
    docs/guides/editors.md for VS Code, Neovim, Helix, Emacs and Zed.

    Exits with 1 if the editor disconnects without ending the session.
    """
    from apflint.lsp.stdio import run

    return run()
