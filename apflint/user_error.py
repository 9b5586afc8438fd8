"""The exception for mistakes of the user. All other exceptions, except OSError, are bugs in apflint."""

from __future__ import annotations


class UserError(Exception):
    """Raised for a mistake in arguments, settings or input files. The message says what is wrong and how to fix it."""
