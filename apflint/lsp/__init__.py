"""The language server: what an editor asks while somebody types, answered from the same rules as `apflint check`.

    text + position → outline → fields → hover, completion
    folder + open texts → project → diagnostics, actions, navigation

All of these are plain functions and values; only `server` knows the protocol, and only the command `apflint lsp` imports
it, with pygls.
"""
