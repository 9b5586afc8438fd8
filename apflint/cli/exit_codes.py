"""The exit codes of apflint."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes. Each code has the same meaning for all commands."""

    OK = 0
    FINDINGS = 1
    """There is a finding whose severity is at least --fail-on, a failed test, a difference, or a refused edit."""
    ERROR = 2
    """Wrong usage, invalid settings, unreadable input, or an internal error."""
    INTERRUPTED = 130
    """The user pressed Ctrl-C (128 + SIGINT)."""
