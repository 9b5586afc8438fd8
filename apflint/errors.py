"""Exceptions for mistakes of the user. Every other exception is a bug in apflint and is reported as an internal error."""

from __future__ import annotations


class UserError(Exception):
    """A mistake in the arguments, settings or input files. The message says what is wrong and what to do about it."""
