"""Functions that build fixes for the rules in `apflint.checks`, if a fix takes more than one line of code."""
