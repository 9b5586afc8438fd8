"""Finds the settings file for a directory, and the root of the git repository that contains the directory."""

from __future__ import annotations

import os
import re

from apflint.budgets import MAX_PYPROJECT_BYTES, MAX_SETTINGS_BYTES
from apflint.settings.toml_files import parse_toml, read_at_most
from apflint.user_error import UserError

_TABLE = re.compile(rb"tool\.apflint|\[tool\]")


def find_settings_file(directory: str) -> str | None:
    """Return the path of the closest settings file, relative to `directory`, or None if there is none.

    Directories above the root of the git repository are not searched.
    """
    start = directory
    while True:
        for name in ("apflint.toml", ".apflint.toml", "pyproject.toml"):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and (name != "pyproject.toml" or _has_apflint_table(path)):
                return os.path.relpath(path, start)
        parent = os.path.dirname(directory)
        if parent == directory or os.path.exists(os.path.join(directory, ".git")):
            return None
        directory = parent


def find_git_root(directory: str) -> str | None:
    """Return the root of the git repository that contains a directory, or None if there is none."""
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _has_apflint_table(path: str) -> bool:
    """Return whether a pyproject.toml has a table `[tool.apflint]`.

    Only a file that contains the name of the table is parsed. If such a file is invalid or too large, the result is
    True, so that reading the settings later reports the error.
    """
    try:
        data = read_at_most(path, MAX_PYPROJECT_BYTES)
    except (OSError, UserError):
        return False  # the file cannot be read, and probably has no settings of apflint
    if data is not None and not _TABLE.search(data):
        return False
    if data is None or len(data) > MAX_SETTINGS_BYTES:
        return True
    try:
        tool = parse_toml(data).get("tool")
    except UserError:
        return True
    return isinstance(tool, dict) and "apflint" in tool
