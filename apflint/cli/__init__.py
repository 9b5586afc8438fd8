"""The command line of apflint: parses arguments, calls the other packages, prints results, and sets the exit code.

`apflint.cli.main.main` is the entry point. A module of `apflint.cli.commands` defines the command of the same name.
"""
