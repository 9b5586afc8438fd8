"""The command line: parses arguments, calls the other packages, prints their results, and exits.

`main.main` is the entry point. Each module of `commands` defines a command: its options, help, examples and body.
"""
