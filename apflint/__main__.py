"""`python -m apflint`."""

from apflint.cli import main

if __name__ == "__main__":
    main()
