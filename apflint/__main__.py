"""Runs the command line for `python -m apflint`."""

from apflint.cli.main import main

if __name__ == "__main__":
    main()
