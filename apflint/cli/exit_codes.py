"""The exit codes of apflint."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FINDINGS = 1
    """Findings at or above --fail-on, a failed test, a difference, or a refused edit."""
    ERROR = 2
    """Wrong usage, invalid settings, unreadable input, or an internal error."""
    INTERRUPTED = 130
    """Ctrl-C."""
