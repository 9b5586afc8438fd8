"""Functions that build fixes. Rules in `apflint.checks` use them for fixes that need more than one line of code."""
